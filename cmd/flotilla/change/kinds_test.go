package change_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kinds run in the member: each with what its own components fill in.
const kinds = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: shop}
spec:
  serviceName: store
  selector: {matchLabels: {app: store}}
  template: {metadata: {labels: {app: store}}, spec: {containers: [{name: store, image: "store:1"}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: watch, namespace: shop}
spec:
  selector: {matchLabels: {app: watch}}
  template: {metadata: {labels: {app: watch}}, spec: {containers: [{name: watch, image: "watch:1"}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: shop}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: "once:1"}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: shop}
spec: {schedule: "0 3 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: once, image: "once:1"}]}}}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: store, namespace: shop}
spec: {clusterIP: None, selector: {app: store}, ports: [{port: 80}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {accessModes: [ReadWriteOnce], volumeName: volume-of-east, resources: {requests: {storage: 1Gi}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: elsewhere}, maxReplicas: 4}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "shop:reader"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
`

// testKinds: none of the usual kinds would be changed by its promotion.
func testKinds(t *testing.T, w *world) {
	if got := call(t, kinds, "create", "-f", "-", "--kubeconfig", w.Member.Kubeconfig); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	for of, policy := range map[string]string{
		"statefulset/store": "PropagationPolicy", "daemonset/watch": "PropagationPolicy", "job/once": "PropagationPolicy", "cronjob/nightly": "PropagationPolicy",
		"service/web": "PropagationPolicy", "service/store": "PropagationPolicy", "pvc/data": "PropagationPolicy", "ingress/web": "PropagationPolicy",
		"hpa/web": "PropagationPolicy", "pdb/web": "PropagationPolicy", "clusterrole/shop:reader": "ClusterPropagationPolicy", "priorityclass/urgent": "ClusterPropagationPolicy",
	} {
		got := w.direct(t, of, "-n", "shop", "--dry-run=server")
		lines := strings.Count(got.Out, "\n")
		if diff := cmp.Diff(result{Code: 0, Out: got.Out}, got); diff != "" || lines != 2 || !strings.Contains(got.Out, "\n"+policy+" ") {
			t.Errorf("%s: %+v", of, got)
		}
	}
	if got := w.direct(t, "pvc", "data", "-n", "shop", "--dry-run", "-o", "yaml"); strings.Contains(got.Out, "volume-of-east") || strings.Contains(got.Out, "pv.kubernetes.io") {
		t.Errorf("the claim's volume is in the template:\n%s", got.Out)
	}
}
