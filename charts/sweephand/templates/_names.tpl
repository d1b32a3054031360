{{/* The prefix of every object's name: RELEASE-sweephand, or RELEASE where that contains "sweephand" already. */}}
{{- define "sweephand.fullname" -}}
{{- $name := include "sweephand.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name -}}
{{- end -}}
{{- end -}}

{{- define "sweephand.name" -}}
{{- .Values.nameOverride | default .Chart.Name -}}
{{- end -}}

{{/* The name of the Lease, and the `name` label of leader_election_master_status. */}}
{{- define "sweephand.leaseName" -}}
{{- include "sweephand.fullname" . }}-dispatcher
{{- end -}}

{{- define "sweephand.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "sweephand.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "sweephand.dispatcherServiceAccountName" -}}
{{- if .Values.dispatcher.serviceAccount.create -}}
{{- .Values.dispatcher.serviceAccount.name | default (printf "%s-dispatcher" (include "sweephand.fullname" .)) -}}
{{- else -}}
{{- .Values.dispatcher.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The image of the processes: the application's own where it has one. */}}
{{- define "sweephand.image" -}}
{{- $image := .Values.image -}}
{{- if .Values.app.image.repository -}}
{{- $image = .Values.app.image -}}
{{- end -}}
{{- include "sweephand.imageReference" (dict "image" $image "defaultTag" .Chart.AppVersion) -}}
{{- end -}}

{{- define "sweephand.imageReference" -}}
{{- if .image.digest -}}
{{- .image.repository }}@{{ .image.digest -}}
{{- else -}}
{{- .image.repository }}:{{ .image.tag | default .defaultTag -}}
{{- end -}}
{{- end -}}
