{{/* Whether an object of a CRD is wanted: "true" or "". Takes root and mode: always, never or auto (where the CRD is installed). */}}
{{- define "sweephand.isMonitored" -}}
{{- if or (eq .mode "always") (and (eq .mode "auto") (.root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
true
{{- end -}}
{{- end -}}

{{/* Gives every series the labels that rules and dashboards count on: release and component. */}}
{{- define "sweephand.scrapeRelabelings" -}}
- sourceLabels: [__meta_kubernetes_pod_label_app_kubernetes_io_instance]
  targetLabel: release
- sourceLabels: [__meta_kubernetes_pod_label_app_kubernetes_io_component]
  targetLabel: component
{{- end -}}
