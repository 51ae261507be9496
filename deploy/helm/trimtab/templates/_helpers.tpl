{{- define "trimtab.name" -}}
{{- if contains "trimtab" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-trimtab" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "trimtab.select" -}}
app.kubernetes.io/name: trimtab
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "trimtab.labels" -}}
{{ include "trimtab.select" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: trimtab
{{- end }}

{{- define "trimtab.account" -}}
{{ .Values.serviceAccount.name | default (include "trimtab.name" .) }}
{{- end }}

{{- define "trimtab.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The name that the journal of the pool has. */}}
{{- define "trimtab.journal" -}}
trimtab-journal-{{ dig "pool" "name" "default" .Values.config | lower }}
{{- end }}

{{- /* The name that the start values of the pool have. */}}
{{- define "trimtab.starts" -}}
trimtab-start-values-{{ dig "pool" "name" "default" .Values.config | lower }}
{{- end }}

{{- /* trimtab.yaml: what the chart knows, under what the values say. */}}
{{- define "trimtab.config" -}}
{{- $own := dict "storage" (dict "path" "/var/lib/trimtab") "actuator" (dict "lock_dir" "/var/lib/trimtab/locks")
  "web" (dict "listen_address" "0.0.0.0:9600") "otlp" (dict "grpc" "0.0.0.0:4317" "http" "0.0.0.0:4318") "jaeger" (dict "grpc" "off") }}
{{- if eq .Values.mode "act" }}{{ $_ := set $own "kubernetes" (dict "journal" .Release.Namespace) }}{{ end }}
{{- include "trimtab.nats" (dict "values" .Values "into" $own) }}
{{- $exporters := dict }}
{{- if ne .Values.mode "observe" }}
{{- $told := dict }}
{{- if ne .Values.events "changes" }}{{ $_ := set $told "events" .Values.events }}{{ end }}
{{- if .Values.startValues.enabled }}{{ $_ := set $told "start_values" .Release.Namespace }}{{ end }}
{{- if .Values.vpa.recommender }}{{ $_ := set $told "recommender" .Values.vpa.recommender }}{{ end }}
{{- if $told }}{{ $_ := set $exporters "kubernetes" $told }}{{ end }}
{{- end }}
{{- if .Values.keda.enabled }}
{{- $_ := set $exporters "keda" (dict "listen_address" "0.0.0.0:9601" "tls" (dict "cert_file" "/etc/trimtab-keda/tls.crt" "key_file" "/etc/trimtab-keda/tls.key" "ca_file" "/etc/trimtab-keda/ca.crt")) }}
{{- end }}
{{- if $exporters }}{{ $_ := set $own "exporters" $exporters }}{{ end }}
{{- toYaml (mustMergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}

{{- define "trimtab.nats" -}}
{{- if eq .values.nats.mode "external" }}
{{- $nats := dict "url" .values.nats.url }}
{{- if .values.nats.credentialsSecret }}{{ $_ := set $nats "credentials_file" "/etc/trimtab-nats/nats.creds" }}{{ end }}
{{- if .values.nats.tlsSecret }}{{ $_ := set $nats "tls" (dict "cert_file" "/etc/trimtab-nats-tls/tls.crt" "key_file" "/etc/trimtab-nats-tls/tls.key" "ca_file" "/etc/trimtab-nats-tls/ca.crt") }}{{ end }}
{{- $_ := set .into "nats" $nats }}
{{- end }}
{{- end }}

{{- define "trimtab.security" -}}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
readOnlyRootFilesystem: true
{{- end }}

{{- define "trimtab.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "trimtab.secretMounts" -}}
{{- if .Values.nats.credentialsSecret }}
- {name: nats, mountPath: /etc/trimtab-nats, readOnly: true}
{{- end }}
{{- if .Values.nats.tlsSecret }}
- {name: nats-tls, mountPath: /etc/trimtab-nats-tls, readOnly: true}
{{- end }}
{{- end }}

{{- define "trimtab.secretVolumes" -}}
{{- if .Values.nats.credentialsSecret }}
- {name: nats, secret: {secretName: {{ .Values.nats.credentialsSecret }}}}
{{- end }}
{{- if .Values.nats.tlsSecret }}
- {name: nats-tls, secret: {secretName: {{ .Values.nats.tlsSecret }}}}
{{- end }}
{{- end }}
