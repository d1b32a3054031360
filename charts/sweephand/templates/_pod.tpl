{{/* The settings of a component's pods: `pod`, overlaid by the component's own `pod`. Takes root and own; gives YAML. */}}
{{- define "sweephand.podSettings" -}}
{{- mustMergeOverwrite (deepCopy .root.Values.pod) (deepCopy (.own | default dict)) | toYaml -}}
{{- end -}}

{{/* The head of a pod's spec. Takes root, component, pod, serviceAccountName and hasToken. */}}
{{- define "sweephand.podSpec" -}}
serviceAccountName: {{ .serviceAccountName }}
automountServiceAccountToken: {{ .hasToken | default false }}
# Kubernetes' links to Services would be read as settings: SWEEPHAND_API_PORT=tcp://…
enableServiceLinks: false
securityContext:
  {{- toYaml .pod.securityContext | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .pod.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .pod.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .pod.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Spreads the pods of one revision. Takes root, component, pool and pod. */}}
{{- define "sweephand.topologySpread" -}}
{{- $labels := include "sweephand.selectorLabels" . -}}
{{- $constraints := list -}}
{{- range $key, $when := .pod.topologySpread -}}
{{- if $when -}}
{{- $constraints = append $constraints (dict "key" $key "when" $when) -}}
{{- end -}}
{{- end -}}
{{- with $constraints -}}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ .key }}
    maxSkew: 1
    whenUnsatisfiable: {{ .when }}
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- $labels | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The head of a container that runs the image. Takes root and pod. */}}
{{- define "sweephand.container" -}}
image: {{ include "sweephand.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .pod.containerSecurityContext | nindent 2 }}
{{- end -}}

{{/* Live while the process makes progress; ready while it can do its work. Neither asks who leads. */}}
{{- define "sweephand.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: 2
{{- end -}}

{{- define "sweephand.volumeMounts" -}}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  {{- if .root.Values.database.tls.caSecret }}
  - name: database-ca
    mountPath: /etc/sweephand/database-ca
    readOnly: true
  {{- end }}
  {{- with .pod.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "sweephand.volumes" -}}
volumes:
  - name: tmp
    emptyDir:
      sizeLimit: 64Mi
  {{- with .root.Values.database.tls.caSecret }}
  - name: database-ca
    secret:
      secretName: {{ . }}
  {{- end }}
  {{- with .pod.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}
