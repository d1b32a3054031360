{{/* The pools of workers, in the order of their names: a YAML list of all keys of `worker`, each overlaid by the pool's. */}}
{{- define "sweephand.workerPools" -}}
{{- $shared := omit .Values.worker "pools" -}}
{{- $pools := list -}}
{{- range $name, $own := .Values.worker.pools -}}
{{- $pools = append $pools (mustMergeOverwrite (deepCopy $shared) (deepCopy ($own | default dict)) (dict "name" $name)) -}}
{{- end -}}
{{- $pools | toYaml -}}
{{- end -}}

{{/* Takes pool, rescue and database. */}}
{{- define "sweephand.workerEnv" -}}
- name: SWEEPHAND_WORKER_THREADS
  value: {{ .pool.threads | quote }}
{{- with .pool.queues }}
- name: SWEEPHAND_WORKER_QUEUES
  value: {{ join "," . | quote }}
{{- end }}
- name: SWEEPHAND_GRACE_SECONDS
  value: {{ .pool.graceSeconds | quote }}
- name: SWEEPHAND_POLL_INTERVAL_SECONDS
  value: {{ .pool.pollIntervalSeconds | quote }}
- name: SWEEPHAND_HEARTBEAT_SECONDS
  value: {{ .rescue.heartbeatSeconds | quote }}
- name: SWEEPHAND_RESCUE_AFTER_SECONDS
  value: {{ .rescue.afterSeconds | quote }}
- name: SWEEPHAND_LISTEN
  value: {{ .database.listen | quote }}
{{- with .database.listenSecretKey }}
- name: SWEEPHAND_LISTEN_DATABASE_URL
  valueFrom:
    secretKeyRef:
      name: {{ $.database.existingSecret }}
      key: {{ . }}
{{- end }}
{{- end -}}
