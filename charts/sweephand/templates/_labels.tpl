{{/* What never changes while the release lives. Takes (dict "root" $ "component" "api"). */}}
{{- define "sweephand.selectorLabels" -}}
app.kubernetes.io/name: {{ include "sweephand.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- with .pool }}
sweephand/pool: {{ . }}
{{- end }}
{{- end -}}

{{/* The metadata of an object below its name. Takes root, component, and perhaps pool, labels and annotations. */}}
{{- define "sweephand.metadata" -}}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "sweephand.selectorLabels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version | replace "+" "_" }}
  {{- with merge (dict) (.labels | default dict) .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The metadata of a pod. Takes root, component, pod (its settings), and isProcess: whether it serves metrics. */}}
{{- define "sweephand.podMetadata" -}}
{{- $root := .root -}}
labels:
  {{- include "sweephand.selectorLabels" . | nindent 2 }}
  {{- if .isProcess }}
  sweephand/metrics: served
  {{- end }}
  {{- with merge (dict) .pod.labels $root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := .pod.annotations -}}
{{- if and .isProcess $root.Values.monitoring.scrapeAnnotations -}}
{{- $scrape := dict "prometheus.io/scrape" "true" "prometheus.io/port" "9090" "prometheus.io/path" "/metrics" -}}
{{- $annotations = merge (dict) $annotations $scrape -}}
{{- end -}}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
