{{/*
What values.schema.json cannot say because it takes two values together: each problem is the values, what is wrong, and
what to do. All of them are told at once.
*/}}
{{- define "sweephand.checks" -}}
{{- $problems := concat (include "sweephand.databaseProblems" . | fromYamlArray) (include "sweephand.workerProblems" . | fromYamlArray) (include "sweephand.otherProblems" . | fromYamlArray) -}}
{{- with $problems -}}
{{- fail (printf "\n\nThese values contradict each other:\n  - %s\n" (join "\n  - " .)) -}}
{{- end -}}
{{- end -}}

{{- define "sweephand.databaseProblems" -}}
{{- $problems := list -}}
{{- $ways := list -}}
{{- with .Values.database -}}
{{- if .existingSecret }}{{ $ways = append $ways "database.existingSecret" }}{{ end -}}
{{- if .host }}{{ $ways = append $ways "database.host" }}{{ end -}}
{{- if .url }}{{ $ways = append $ways "database.url" }}{{ end -}}
{{- end -}}
{{- if .Values.postgres.enabled }}{{ $ways = append $ways "postgres.enabled" }}{{ end -}}
{{- if not $ways -}}
{{- $problems = append $problems "no database: set database.existingSecret to a Secret whose key `url` is postgresql://user:password@host:5432/name; or, to try it out, environment=development, postgres.enabled=true and postgres.password" -}}
{{- else if gt (len $ways) 1 -}}
{{- $problems = append $problems (printf "%s: more than one database; keep one of them" (join " and " $ways)) -}}
{{- end -}}
{{- with .Values.database -}}
{{- if and .host (not .passwordSecret) -}}
{{- $problems = append $problems "database.host without database.passwordSecret: name the Secret that holds the password" -}}
{{- end -}}
{{- if and .passwordSecret (not .host) -}}
{{- $problems = append $problems "database.passwordSecret without database.host: set the host, or put the whole URL into database.existingSecret" -}}
{{- end -}}
{{- if and .listenSecretKey (not .existingSecret) -}}
{{- $problems = append $problems "database.listenSecretKey is a key of database.existingSecret: set that too" -}}
{{- end -}}
{{- if and .listenSecretKey (not .listen) -}}
{{- $problems = append $problems "database.listenSecretKey with database.listen=false: remove one of them" -}}
{{- end -}}
{{- if and (hasPrefix "verify-" .tls.mode) (not .tls.caSecret) -}}
{{- $problems = append $problems (printf "database.tls.mode=%s without database.tls.caSecret: name the Secret that holds the certificate authority" .tls.mode) -}}
{{- end -}}
{{- end -}}
{{- $isDevelopment := eq .Values.environment "development" -}}
{{- if and .Values.database.url (not $isDevelopment) -}}
{{- $problems = append $problems "database.url holds a password: put it into a Secret and name that in database.existingSecret, or set environment=development" -}}
{{- end -}}
{{- with .Values.postgres -}}
{{- if and .password (not $isDevelopment) -}}
{{- $problems = append $problems "postgres.password is written into the values: put it into a Secret and name that in postgres.existingSecret, or set environment=development" -}}
{{- end -}}
{{- if and .password .existingSecret -}}
{{- $problems = append $problems "postgres.password and postgres.existingSecret: keep one of them" -}}
{{- end -}}
{{- if and .enabled (not .password) (not .existingSecret) -}}
{{- $problems = append $problems "postgres.enabled without a password: set postgres.existingSecret, or environment=development and postgres.password" -}}
{{- end -}}
{{- end -}}
{{- $problems | toYaml -}}
{{- end -}}

{{- define "sweephand.workerProblems" -}}
{{- $problems := list -}}
{{- $pools := include "sweephand.workerPools" . | fromYamlArray -}}
{{- if not $pools -}}
{{- $problems = append $problems "worker.pools has no pool, so jobs would wait for ever: add one, for example worker.pools.default={}" -}}
{{- end -}}
{{- range $pool := $pools -}}
{{- $at := printf "worker.pools.%s" .name -}}
{{- $least := add .graceSeconds 15 -}}
{{- with .terminationGracePeriodSeconds -}}
{{- if lt (int .) (int $least) -}}
{{- $problems = append $problems (printf "%s.terminationGracePeriodSeconds=%d is shorter than the job limit at shutdown, graceSeconds=%d, and 15 s to hand jobs back: set it to %d or more, or to null" $at (int .) (int $pool.graceSeconds) (int $least)) -}}
{{- end -}}
{{- end -}}
{{- with .autoscaling -}}
{{- if and (ne .mode "none") (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- $problems = append $problems (printf "%s.autoscaling.minReplicas=%d is more than maxReplicas=%d" $at (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- if and (eq .mode "hpa") (lt (int .minReplicas) 1) -}}
{{- $problems = append $problems (printf "%s.autoscaling.minReplicas=0 needs mode=keda: a HorizontalPodAutoscaler keeps at least one pod" $at) -}}
{{- end -}}
{{- if and (eq .mode "keda") (not .keda.serverAddress) -}}
{{- $problems = append $problems (printf "%s.autoscaling.mode=keda without keda.serverAddress: set Prometheus' address, for example http://prometheus.monitoring:9090" $at) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.rescue -}}
{{- if lt (float64 .afterSeconds) (mulf 3 .heartbeatSeconds) -}}
{{- $problems = append $problems (printf "rescue.afterSeconds=%v is less than three times rescue.heartbeatSeconds=%v: one lost heartbeat would start jobs twice" .afterSeconds .heartbeatSeconds) -}}
{{- end -}}
{{- end -}}
{{- $problems | toYaml -}}
{{- end -}}

{{- define "sweephand.otherProblems" -}}
{{- $problems := list -}}
{{- with .Values.dispatcher.election -}}
{{- if ge (float64 .renewDeadlineSeconds) (float64 .leaseDurationSeconds) -}}
{{- $problems = append $problems (printf "dispatcher.election.renewDeadlineSeconds=%v must be shorter than leaseDurationSeconds=%v: a leader has to stop before another one may start" .renewDeadlineSeconds .leaseDurationSeconds) -}}
{{- end -}}
{{- if le (float64 .renewDeadlineSeconds) (mulf 1.2 .retryPeriodSeconds) -}}
{{- $problems = append $problems (printf "dispatcher.election.renewDeadlineSeconds=%v must be more than 1.2 times retryPeriodSeconds=%v: one late renewal would cost the lead" .renewDeadlineSeconds .retryPeriodSeconds) -}}
{{- end -}}
{{- end -}}
{{- with .Values.dispatcher -}}
{{- if and (eq .election.kind "kubernetes") (not .serviceAccount.create) (not .serviceAccount.name) -}}
{{- $problems = append $problems "dispatcher.serviceAccount.create=false without a name: name the ServiceAccount that may use the Lease, or set dispatcher.election.kind=postgres" -}}
{{- end -}}
{{- end -}}
{{- with .Values.app.image -}}
{{- if and .repository (not .tag) (not .digest) -}}
{{- $problems = append $problems (printf "app.image.repository=%s without a tag: set app.image.tag or app.image.digest" .repository) -}}
{{- end -}}
{{- if and (or .tag .digest) (not .repository) -}}
{{- $problems = append $problems "app.image.tag or digest without app.image.repository: set the repository, or use image.tag for the chart's own image" -}}
{{- end -}}
{{- end -}}
{{- range $name, $_ := .Values.app.env -}}
{{- if regexMatch "^(SWEEPHAND_.*|DATABASE_URL|POD_NAME|PG.*)$" $name -}}
{{- $problems = append $problems (printf "app.env.%s: this variable is sweephand's own and set from other values; to overrule it all the same, use pod.extraEnv" $name) -}}
{{- end -}}
{{- end -}}
{{- with .Values.api -}}
{{- if and .ingress.enabled (not .ingress.hosts) -}}
{{- $problems = append $problems "api.ingress.enabled without hosts: name at least one in api.ingress.hosts" -}}
{{- end -}}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) -}}
{{- $problems = append $problems "api.httpRoute.enabled without parentRefs: name the Gateway in api.httpRoute.parentRefs" -}}
{{- end -}}
{{- if and .autoscaling.enabled (gt (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) -}}
{{- $problems = append $problems (printf "api.autoscaling.minReplicas=%d is more than maxReplicas=%d" (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) -}}
{{- end -}}
{{- end -}}
{{- $fullname := include "sweephand.fullname" . -}}
{{- if gt (len $fullname) 40 -}}
{{- $problems = append $problems (printf "the objects' names would begin with %q, which is %d characters long: set fullnameOverride to at most 40" $fullname (len $fullname)) -}}
{{- end -}}
{{- $problems | toYaml -}}
{{- end -}}
