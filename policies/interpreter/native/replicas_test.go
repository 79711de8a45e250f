package native_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// answers are the results for the replicas of an object.
type answers struct {
	Replicas int32
	Needs    *workv1alpha2.ReplicaRequirements
	Known    bool
	Error    string
	// Revised is the spec with seven replicas.
	Revised map[string]any
}

// TestReplicas checks that replicas and requirements are read, and that replicas
// can be changed where the template has a number.
func TestReplicas(t *testing.T) {
	const podSpec = `spec: {nodeSelector: {disk: fast}, containers: [{resources: {requests: {cpu: 250m}}}]}`
	needs := &workv1alpha2.ReplicaRequirements{
		NodeClaim:       &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"disk": "fast"}},
		ResourceRequest: corev1.ResourceList{"cpu": resource.MustParse("250m")},
		Namespace:       "ns",
	}
	spec := func(text string) map[string]any { return object(t, "{"+text+"}").Object }
	cases := map[string]struct {
		object string
		want   answers
	}{
		"a deployment": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: ns}, spec: {replicas: 3, template: {` + podSpec + `}}}`,
			answers{3, needs, true, "", spec(`replicas: 7, template: {` + podSpec + `}`)},
		},
		"a deployment of pods that need nothing": {
			`{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3}}`, answers{3, nil, true, "", spec(`replicas: 7`)},
		},
		"a stateful set that says no number": {`{apiVersion: apps/v1, kind: StatefulSet, spec: {a: b}}`, answers{0, nil, true, "", spec(`a: b`)}},
		"a replica set of less than none": {
			`{apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: -1}}`,
			answers{0, nil, true, "spec.replicas is no number of replicas: -1", spec(`replicas: 7`)},
		},
		"a replication controller": {
			`{apiVersion: v1, kind: ReplicationController, metadata: {namespace: ns}, spec: {replicas: 3, template: {` + podSpec + `}}}`,
			answers{3, needs, true, "", spec(`replicas: 7, template: {` + podSpec + `}`)},
		},
		"a daemon set has none": {`{apiVersion: apps/v1, kind: DaemonSet, spec: {replicas: 3}}`, answers{Revised: spec(`replicas: 3`)}},
		"a pod is one": {
			`{apiVersion: v1, kind: Pod, metadata: {namespace: ns}, ` + podSpec + `}`, answers{1, needs, true, "", object(t, "{"+podSpec+"}").Object["spec"].(map[string]any)},
		},
		"a job runs so many at once": {
			`{apiVersion: batch/v1, kind: Job, metadata: {namespace: ns}, spec: {parallelism: 4, template: {` + podSpec + `}}}`,
			answers{4, needs, true, "", spec(`parallelism: 7, template: {` + podSpec + `}`)},
		},
		"no more than it is to complete": {
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 4, completions: 3}}`, answers{3, nil, true, "", spec(`parallelism: 7, completions: 3`)},
		},
		"nor more than at once": {
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 4, completions: 30}}`, answers{4, nil, true, "", spec(`parallelism: 7, completions: 30`)},
		},
		"a job of no number that can be": {
			`{apiVersion: batch/v1, kind: Job, spec: {parallelism: 4, completions: -3}}`,
			answers{0, nil, true, "spec.completions is no number of replicas: -3", spec(`parallelism: 7, completions: -3`)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			know, in := interpreter.Native(), object(t, tc.object)
			got := answers{}
			var err error
			if got.Replicas, got.Needs, got.Known, err = know.Replicas(in); err != nil {
				got.Error = err.Error()
			}
			revised, _, err := know.Revise(in, 7)
			if err != nil {
				t.Fatal(err)
			}
			got.Revised, _ = revised.Object["spec"].(map[string]any)
			if i := strings.Index(got.Error, "spec."); i > 0 {
				got.Error = got.Error[i:] // cuts the prefix with the kind
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDependencies checks that what the pods of an object cannot run without is
// found wherever the kind has its pod spec, and that what the object makes itself
// is not.
func TestDependencies(t *testing.T) {
	const podSpec = `spec: {serviceAccountName: me, volumes: [{name: v, configMap: {name: conf}}, {name: d, persistentVolumeClaim: {claimName: data}}]}`
	all := []kinds.Dependency{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "conf"},
		{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data"},
		{APIVersion: "v1", Kind: "ServiceAccount", Namespace: "ns", Name: "me"},
	}
	cases := map[string]struct {
		object string
		want   []kinds.Dependency
	}{
		"a deployment":             {`apiVersion: apps/v1, kind: Deployment, spec: {template: {` + podSpec + `}}`, all},
		"a replica set":            {`apiVersion: apps/v1, kind: ReplicaSet, spec: {template: {` + podSpec + `}}`, all},
		"a replication controller": {`apiVersion: v1, kind: ReplicationController, spec: {template: {` + podSpec + `}}`, all},
		"a daemon set":             {`apiVersion: apps/v1, kind: DaemonSet, spec: {template: {` + podSpec + `}}`, all},
		"a job":                    {`apiVersion: batch/v1, kind: Job, spec: {template: {` + podSpec + `}}`, all},
		"a cron job":               {`apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: {` + podSpec + `}}}}`, all},
		"a pod":                    {`apiVersion: v1, kind: Pod, ` + podSpec, all},
		"a stateful set that makes claims of other names": {
			`apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{metadata: {name: conf}}], template: {` + podSpec + `}}`, all,
		},
		"a stateful set that makes the claim itself": {
			`apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {` + podSpec + `}}`,
			[]kinds.Dependency{all[0], all[2]},
		},
		"an ingress needs its certificates, each once": {
			`apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {tls: [{secretName: b}, {hosts: [h]}, {secretName: a}, {secretName: b}]}`,
			[]kinds.Dependency{{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "a"}, {APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "b"}},
		},
		"an imported service needs what stands for it": {
			`apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport`,
			[]kinds.Dependency{
				{APIVersion: "v1", Kind: "Service", Namespace: "ns", Name: "derived-web"},
				{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice", Namespace: "ns", LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"kubernetes.io/service-name": "derived-web"},
				}},
			},
		},
		"a service needs nothing": {`apiVersion: v1, kind: Service`, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, _, err := interpreter.Native().Dependencies(object(t, `{metadata: {namespace: ns, name: web}, `+tc.object+`}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dependencies (-want +got):\n%s", diff)
			}
		})
	}
}
