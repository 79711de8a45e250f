package customizations_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/interpreter"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// The tables of facts have one row for each thing that the rules of a kind get
// right, besides what the examples show.

func fromYAML(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return out
}

// made returns an object of a kind, "group/version Kind", whose other fields are
// given as YAML.
func made(t testing.TB, of, fields string) kinds.Object {
	t.Helper()
	obj := &unstructured.Unstructured{Object: fromYAML(t, fields)}
	var apiVersion, kind string
	if _, err := fmt.Sscan(of, &apiVersion, &kind); err != nil {
		t.Fatal(err)
	}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj
}

// sum is a row about statuses: what a template of generation 2 gets of copies in
// the clusters m1, m2, … with the statuses given. Wanted are fields of the
// template's status; one that is null is not to be there.
type sum struct {
	kind, spec string
	statuses   []string
	want       string
}

func checkSums(t *testing.T, rows map[string]sum) {
	t.Helper()
	know := interpreter.New(customizations.Table())
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			template := made(t, row.kind, `{metadata: {name: x, namespace: shop, generation: 2}, spec: {`+row.spec+`}, status: {observedGeneration: 1}}`)
			var all []workv1alpha2.AggregatedStatusItem
			for i, status := range row.statuses {
				item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster(i)}
				if status != "-" {
					member := made(t, row.kind, `{metadata: {name: x, namespace: shop, generation: 7, annotations: {resourcetemplate.karmada.io/generation: "2"}}}`)
					member.Object["status"] = fromYAML(t, status)
					var err error
					if item.Status, err = know.ReflectStatus(member); err != nil {
						t.Fatal(err)
					}
				}
				all = append(all, item)
			}
			status, _, err := know.AggregateStatus(template, all)
			if err != nil {
				t.Fatal(err)
			}
			want, got := fromYAML(t, row.want), map[string]any{}
			for field := range want {
				got[field] = status[field]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStandingInNoCluster: what stands in no cluster, such as a divided workload
// that asks for no replicas, is observed as it is.
func TestStandingInNoCluster(t *testing.T) {
	const seen = `{observedGeneration: 2}`
	checkSums(t, map[string]sum{
		"CloneSet":         {kind: "apps.kruise.io/v1alpha1 CloneSet", want: `{observedGeneration: 2, replicas: 0, readyReplicas: 0}`},
		"StatefulSet":      {kind: "apps.kruise.io/v1beta1 StatefulSet", want: seen},
		"DaemonSet":        {kind: "apps.kruise.io/v1alpha1 DaemonSet", want: seen},
		"UnitedDeployment": {kind: "apps.kruise.io/v1alpha1 UnitedDeployment", want: seen},
		"SidecarSet":       {kind: "apps.kruise.io/v1alpha1 SidecarSet", want: seen},
		"Rollout, as text": {kind: "argoproj.io/v1alpha1 Rollout", want: `{observedGeneration: "2"}`},
		"HelmRelease":      {kind: "helm.toolkit.fluxcd.io/v2 HelmRelease", want: seen},
		"Kustomization":    {kind: "kustomize.toolkit.fluxcd.io/v1 Kustomization", want: seen},
		"a source of Flux": {kind: "source.toolkit.fluxcd.io/v1 Bucket", want: seen},
		"RayCluster":       {kind: "ray.io/v1 RayCluster", want: seen},
		"a cluster that says nothing is one all the same": {kind: "apps.kruise.io/v1alpha1 CloneSet", statuses: []string{"-"}, want: `{observedGeneration: 1}`},
	})
}

// TestOneCluster: what the only cluster says is said as it is.
func TestOneCluster(t *testing.T) {
	checkSums(t, map[string]sum{
		"a phase of a newer operator stays": {
			kind: "batch.volcano.sh/v1alpha1 Job", statuses: []string{`{state: {phase: Hibernating, message: sleeps}}`},
			want: `{state: {phase: Hibernating, message: sleeps}}`,
		},
		"a state of a newer operator stays": {
			kind: "ray.io/v1 RayCluster", statuses: []string{`{state: hibernating}`}, want: `{state: hibernating}`,
		},
		"messages of conditions name no cluster": {
			kind:     "kubeflow.org/v2beta1 MPIJob",
			statuses: []string{`{conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: it failed, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`},
			want:     `{conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: it failed, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		},
		"nor do other messages": {
			kind: "argoproj.io/v1alpha1 Workflow", statuses: []string{`{phase: Failed, message: child failed}`},
			want: `{phase: Failed, message: child failed}`,
		},
	})
}

// TestWordsNobodyKnows: words that are not known, as newer operators have them, are
// better than what is bad and worse than what is good.
func TestWordsNobodyKnows(t *testing.T) {
	checkSums(t, map[string]sum{
		"beside a good one": {
			kind: "argoproj.io/v1alpha1 Workflow", statuses: []string{`{phase: Succeeded}`, `{phase: Dreaming}`, `{phase: Napping}`}, want: `{phase: Dreaming}`,
		},
		"beside a bad one": {
			kind: "argoproj.io/v1alpha1 Workflow", statuses: []string{`{phase: Failed}`, `{phase: Dreaming}`}, want: `{phase: Failed}`,
		},
		"in a field that comes from one cluster": {
			kind:     "sparkoperator.k8s.io/v1beta2 SparkApplication",
			statuses: []string{`{applicationState: {state: COMPLETED}}`, `{applicationState: {state: DREAMING}}`}, want: `{applicationState: {state: DREAMING}}`,
		},
		"one that is no word has no say": {
			kind: "argoproj.io/v1alpha1 Workflow", statuses: []string{`{phase: Running}`, `{phase: ` + fmt.Sprintf("%0200d", 1) + `x}`}, want: `{phase: Running}`,
		},
	})
}

// TestWhoLacksAField: a cluster that has a status without a field has no say about
// the field; two values that differ remove it.
func TestWhoLacksAField(t *testing.T) {
	checkSums(t, map[string]sum{
		"AdvancedCronJob": {
			kind: "apps.kruise.io/v1alpha1 AdvancedCronJob", statuses: []string{`{type: Job}`, `{lastScheduleTime: "2026-01-01T00:00:00Z"}`}, want: `{type: Job}`,
		},
		"DaemonSet": {
			kind: "apps.kruise.io/v1alpha1 DaemonSet", statuses: []string{`{numberReady: 1}`, `{daemonSetHash: abc}`, `{daemonSetHash: ""}`}, want: `{daemonSetHash: abc}`,
		},
		"revisions and selectors": {
			kind: "apps.kruise.io/v1alpha1 CloneSet", statuses: []string{`{updateRevision: r1, labelSelector: a=b}`, `{replicas: 1}`},
			want: `{updateRevision: r1, labelSelector: a=b}`,
		},
		"two values remove it": {
			kind: "apps.kruise.io/v1alpha1 CloneSet", statuses: []string{`{updateRevision: r1, labelSelector: a=b}`, `{}`, `{updateRevision: r2, labelSelector: a=b}`},
			want: `{updateRevision: null, labelSelector: a=b}`,
		},
	})
}
