package lua_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/flotilla-io/flotilla/api/config/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
	"github.com/flotilla-io/flotilla/policies/interpreter/lua"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		t.Fatal(err)
	}
	return obj
}

func code(source string) *configv1alpha1.CustomizationScript {
	return &configv1alpha1.CustomizationScript{LuaScript: source}
}

// clock is a clock that stands still.
func clock() time.Time { return time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC) }

func health(t testing.TB, m *lua.Machine, source string) func(kinds.Object) (bool, error) {
	t.Helper()
	r, problems := m.Rules(configv1alpha1.CustomizationRules{HealthInterpretation: code(source)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return r.Health
}

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  generation: 7
  labels: {app: web, team: checkout}
  annotations: {a.example.io/x: "1", resourcetemplate.karmada.io/generation: "7"}
spec:
  replicas: 3
  revisionHistoryLimit: 10
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 25%}}
  template:
    metadata: {labels: {app: web, team: checkout}}
    spec:
      serviceAccountName: web
      terminationGracePeriodSeconds: 30
      dnsPolicy: ClusterFirst
      restartPolicy: Always
      schedulerName: default-scheduler
      securityContext: {runAsNonRoot: true, runAsUser: 1000}
      containers:
      - name: web
        image: registry.example.io/shop/web:1.2.3
        imagePullPolicy: IfNotPresent
        ports: [{containerPort: 8080, name: http, protocol: TCP}, {containerPort: 9090, name: metrics, protocol: TCP}]
        env: [{name: A, value: "1"}, {name: B, valueFrom: {configMapKeyRef: {name: web, key: b}}}, {name: C, valueFrom: {secretKeyRef: {name: web, key: c}}}]
        resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {memory: 256Mi}}
        readinessProbe: {httpGet: {path: /healthz, port: http, scheme: HTTP}, periodSeconds: 10, timeoutSeconds: 1, failureThreshold: 3}
        terminationMessagePath: /dev/termination-log
        terminationMessagePolicy: File
      - name: proxy
        image: registry.example.io/mesh/proxy:2.0
        resources: {requests: {cpu: 50m, memory: 64Mi}}
      volumes: [{name: config, configMap: {name: web, defaultMode: 420}}]
status:
  observedGeneration: 7
  replicas: 3
  updatedReplicas: 3
  readyReplicas: 3
  availableReplicas: 3
  conditions:
  - {type: Available, status: "True", reason: MinimumReplicasAvailable, lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z", message: Deployment has minimum availability.}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable, lastUpdateTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z", message: done}
`
