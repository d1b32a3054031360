{{/*
The environment of a process. Takes root, pod (its settings), own (the lines that only this component needs) and perhaps
database (the lines that say where it is, in place of the processes').
*/}}
{{- define "sweephand.env" -}}
{{- $values := .root.Values -}}
env:
  {{- .database | default (include "sweephand.databaseEnv" .root) | nindent 2 }}
  {{- with include "sweephand.databaseTlsEnv" .root }}
  {{- . | nindent 2 }}
  {{- end }}
  - name: SWEEPHAND_APP
    value: {{ $values.app.target | quote }}
  - name: SWEEPHAND_ENVIRONMENT
    value: {{ $values.environment }}
  - name: SWEEPHAND_LOG_FORMAT
    value: {{ $values.log.format }}
  - name: SWEEPHAND_LOG_LEVEL
    value: {{ $values.log.level }}
  - name: SWEEPHAND_PREPARED_STATEMENTS
    value: {{ $values.database.preparedStatements | quote }}
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- with .own }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- range $name, $value := $values.app.env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- with .pod.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .pod.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* DATABASE_URL, and PGPASSWORD where the URL is written here without its password. */}}
{{- define "sweephand.databaseEnv" -}}
{{- $database := .Values.database -}}
{{- if .Values.postgres.enabled -}}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef:
      {{- include "sweephand.postgresPassword" . | nindent 6 }}
- name: DATABASE_URL
  value: postgresql://{{ $database.user }}@{{ include "sweephand.fullname" . }}-postgres:5432/{{ $database.name }}
{{- else if $database.host -}}
- name: PGPASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ $database.passwordSecret }}
      key: {{ $database.passwordSecretKey }}
- name: DATABASE_URL
  value: postgresql://{{ $database.user | urlquery }}@{{ $database.host }}:{{ $database.port }}/{{ $database.name | urlquery }}
{{- else -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ $database.existingSecret | default (printf "%s-database" (include "sweephand.fullname" .)) }}
      key: {{ empty $database.existingSecret | ternary "url" $database.existingSecretKey }}
{{- end -}}
{{- end -}}

{{/* libpq reads these wherever the URL does not say otherwise. */}}
{{- define "sweephand.databaseTlsEnv" -}}
{{- with .Values.database.tls.mode -}}
- name: PGSSLMODE
  value: {{ . }}
{{- end }}
{{- if .Values.database.tls.caSecret }}
- name: PGSSLROOTCERT
  value: /etc/sweephand/database-ca/{{ .Values.database.tls.caSecretKey }}
{{- end }}
{{- end -}}

{{- define "sweephand.postgresPassword" -}}
name: {{ .Values.postgres.existingSecret | default (printf "%s-postgres" (include "sweephand.fullname" .)) }}
key: {{ empty .Values.postgres.existingSecret | ternary "password" .Values.postgres.existingSecretKey }}
{{- end -}}
