{{/* The settings as a dictionary; empty without any. */}}
{{- define "hb.settings" -}}
{{- if .Values.settings -}}
  {{- $read := fromToml .Values.settings -}}
  {{- if $read.Error -}}{{- fail (printf "settings: this is no TOML: %s" $read.Error) -}}{{- end -}}
  {{- if not (and $read.name $read.learners) -}}
    {{- fail "settings: name or learners are missing; give the whole file: --set-file settings=ensemble.toml" -}}
  {{- end -}}
  {{- toJson $read -}}
{{- else -}}
  {{- if not (or .Values.monitoring.rules .Values.monitoring.dashboards) -}}
    {{- fail "settings are missing: --set-file settings=ensemble.toml" -}}
  {{- end -}}
  {}
{{- end -}}
{{- end -}}

{{/* The roles as {"list": [{"key", "role", "agent", "name"}]}: by what values, hb, metrics and Kubernetes call them. */}}
{{- define "hb.roles" -}}
{{- $settings := include "hb.settings" . | fromJson -}}
{{- $release := .Release.Name -}}
{{- $list := list -}}
{{- $names := dict -}}
{{- if $settings -}}
  {{- range $key := keys $settings.learners | sortAlpha -}}
    {{- $list = append $list (dict "key" $key "role" (printf "local:%s" $key) "agent" (printf "local.%s" $key) "name" (printf "%s-local-%s" $release (replace "_" "-" $key))) -}}
  {{- end -}}
  {{- $list = append $list (dict "key" "ensemble" "role" "ensemble" "agent" "ensemble" "name" (printf "%s-ensemble" $release)) -}}
  {{- range $list -}}
    {{- if hasKey $names .name -}}
      {{- fail (printf "two learners would both be called %s in Kubernetes, which has no underscores; rename one" .name) -}}
    {{- end -}}
    {{- $_ := set $names .name true -}}
    {{- if gt (len .name) 52 -}}
      {{- fail (printf "%s is longer than the 52 letters that Kubernetes allows for a StatefulSet; give the release a shorter name" .name) -}}
    {{- end -}}
  {{- end -}}
  {{- $keys := list -}}
  {{- range $list -}}{{- $keys = append $keys .key -}}{{- end -}}
  {{- range $key, $_ := .Values.roles -}}
    {{- if not (has $key $keys) -}}
      {{- fail (printf "roles.%s: the settings have no such role; they have: %s" $key (join ", " $keys)) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- toJson (dict "list" $list) -}}
{{- end -}}

{{- define "hb.labels" -}}
app.kubernetes.io/name: hedged-bandits
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "hb.selector" -}}
app.kubernetes.io/name: hedged-bandits
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hb.image" -}}
{{- with .Values.image.digest -}}
{{ $.Values.image.repository }}@{{ . }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "hb.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "hb.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Environment variables; takes the chart's values as `values` and the role's further ones as `env`. */}}
{{- define "hb.env" -}}
- name: HB_SET__WORKER__STATE
  value: /var/lib/hb/state
- name: HB_SET__WORKER__WEB_HOST
  value: 0.0.0.0
- name: HB_SET__WORKER__WEB_PORT
  value: {{ .values.web.port | quote }}
{{- if .values.web.tokenSecret }}
- name: HB_SET__WORKER__WEB_TOKEN__ENV
  value: HB_WEB_TOKEN
- name: HB_WEB_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .values.web.tokenSecret }}
      key: {{ .values.web.tokenKey }}
{{- else }}
- name: HB_SET__WORKER__INSECURE
  value: "true"
{{- end }}
{{- if .values.broker.bootstrap }}
- name: HB_SET__BROKER__BOOTSTRAP
  value: {{ .values.broker.bootstrap | quote }}
{{- end }}
{{- range $name, $value := merge (dict) (.env | default dict) .values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "hb.mounts" -}}
- name: settings
  mountPath: /etc/hb/ensemble.toml
  subPath: ensemble.toml
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- if .files }}
- name: secrets
  mountPath: /etc/hb/secrets
  readOnly: true
{{- end }}
{{- end -}}

{{- define "hb.volumes" -}}
- name: settings
  configMap:
    name: {{ .settings }}
- name: tmp
  emptyDir: {}
{{- if .files }}
- name: secrets
  secret:
    secretName: {{ .files }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{- define "hb.egress" -}}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
- ports:
    {{- range .Values.networkPolicy.kafkaPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .Values.networkPolicy.kafka }}
  to: {{ toJson . }}
  {{- end }}
{{- with .Values.networkPolicy.egress }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The selector of one component, such as a role. */}}
{{- define "hb.of" -}}
{{ include "hb.selector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "hb.labelsOf" -}}
{{ include "hb.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}
