package explain_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/explain"
	"github.com/flotilla-io/flotilla/policies/explain/change"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const behindWork = `
metadata: {namespace: karmada-es-c-001, name: web, generation: 3}
status: {conditions: [{type: Applied, status: "True", reason: AppliedSuccessful, observedGeneration: 2}]}
`

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web, uid: u-web}
spec:
  replicas: 6
  template: {spec: {containers: [{name: app, image: "registry.example/web:1.0"}]}}
`

const policy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {namespace: shop, name: web, labels: {propagationpolicy.karmada.io/permanent-id: p-web}}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement:
    clusterAffinities:
    - {affinityName: primary, labelSelector: {matchLabels: {tier: gold}}}
    - {affinityName: backup, labelSelector: {matchLabels: {tier: lead}}}
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 2}]
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}
`

const overridePolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {namespace: shop, name: mirror}
spec:
  overrideRules:
  - targetCluster: {clusterNames: [c-001]}
    overriders:
      imageOverrider: [{component: Registry, operator: replace, value: mirror.example}]
`

// parse decodes YAML into obj.
func parse[T any](tb testing.TB, text string, obj T) T {
	tb.Helper()
	if err := yaml.Unmarshal([]byte(text), obj); err != nil {
		tb.Fatal(err)
	}
	return obj
}

func template(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &obj.Object); err != nil {
		tb.Fatal(err)
	}
	return obj
}

func cluster(tb testing.TB, name, tier, more string) *clusterv1alpha1.Cluster {
	tb.Helper()
	c := parse(tb, `
status:
  apiEnablements: [{groupVersion: apps/v1, resources: [{kind: Deployment}]}]
  resourceSummary: {allocatable: {pods: "9"}}
`+more, &clusterv1alpha1.Cluster{})
	c.Name, c.Labels = name, map[string]string{"tier": tier}
	return c
}

// fleet returns a hundred clusters, none of which is golden any more, and few of
// which lead.
func fleet(tb testing.TB) []*clusterv1alpha1.Cluster {
	tb.Helper()
	var out []*clusterv1alpha1.Cluster
	for i := range 100 {
		name, tier, more := fmt.Sprintf("c-%03d", i), "tin", ""
		switch {
		case i < 3:
			tier = "lead"
		case i%3 == 0:
			tier, more = "gold", `spec: {taints: [{key: maintenance, effect: NoSchedule}]}`
		}
		out = append(out, cluster(tb, name, tier, more))
	}
	return out
}

func input(tb testing.TB) explain.Input {
	tb.Helper()
	return explain.Input{
		Template:  template(tb, deployment),
		Policies:  []policyv1alpha1.Policy{parse(tb, policy, &policyv1alpha1.PropagationPolicy{})},
		Overrides: []policyv1alpha1.Override{parse(tb, overridePolicy, &policyv1alpha1.OverridePolicy{})},
		Clusters:  fleet(tb),
		Now:       noon,
	}
}

// bound returns a binding that the policy made, and that runs in a cluster.
func bound(tb testing.TB) *workv1alpha2.ResourceBinding {
	tb.Helper()
	return parse(tb, `
metadata:
  namespace: shop
  name: web-deployment
  labels: {propagationpolicy.karmada.io/permanent-id: p-web, resourcebinding.karmada.io/permanent-id: b-web}
  annotations:
    propagationpolicy.karmada.io/namespace: shop
    propagationpolicy.karmada.io/name: web
    scheduling.flotilla.io/decision: '{"reason":"Success","affinityName":"backup","at":"2026-01-01T11:00:00Z"}'
spec:
  resource: {apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web, uid: u-web}
  replicas: 6
  clusters: [{name: c-001, replicas: 5}, {name: c-gone, replicas: 1}]
  gracefulEvictionTasks: [{fromCluster: c-007, reason: TaintUntolerated, producer: TaintManager}]
  requiredBy: [{namespace: shop, name: other-deployment}]
status:
  aggregatedStatus: [{clusterName: c-001, applied: true, health: Healthy}, {clusterName: c-007, applied: false, appliedMessage: "connection refused"}]
`, &workv1alpha2.ResourceBinding{})
}

// bind adds to the input the template's claim and its binding.
func bind(tb testing.TB, in *explain.Input) {
	tb.Helper()
	propagation.ClaimOf(in.Policies[0]).Set(in.Template)
	in.Binding = bound(tb)
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); run with -update and review the diff:\n%s", path, diff)
	}
}

// TestText compares what people see of a fleet that is too large for one screen
// with the golden files.
func TestText(t *testing.T) {
	first, moved := input(t), input(t)
	bind(t, &moved)
	blind := input(t)
	bind(t, &blind)
	blind.Policies, blind.Clusters, blind.Overrides = nil, nil, nil
	blind.Unread = []explain.Unread{
		{What: explain.UnreadClusters, Text: "the clusters"},
		{What: explain.UnreadPolicies, Text: "the PropagationPolicies of namespace shop"},
	}
	tenant := input(t) // may read all of its namespace, and nothing else
	bind(t, &tenant)
	tenant.Clusters, tenant.Unread = nil, []explain.Unread{{What: explain.UnreadClusters, Text: "the clusters"}}
	silent := input(t)
	bind(t, &silent)
	for _, c := range silent.Clusters {
		if c.Name == "c-001" || c.Name == "c-007" {
			c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "ClusterNotReachable", LastTransitionTime: metav1.NewTime(noon.Add(-3 * time.Minute))}}
		}
	}
	foreign := input(t) // a plugin of the control plane refuses what the other plugins accept
	bind(t, &foreign)
	foreign.Clusters = foreign.Clusters[:6]
	foreign.Binding.BindingSpec().Clusters = nil
	foreign.Binding.SetAnnotations(map[string]string{workv1alpha2.SchedulingDecisionAnnotation: `{
		"reason": "NoClusterFit", "message": "0/6 clusters are available: 6 cluster(s) were not of tier platinum.", "affinityName": "backup",
		"at": "2026-01-01T11:00:00Z", "plugins": ["Platinum", "-TaintToleration"]}`})
	cases := map[string]struct {
		in   explain.Input
		only []string
		opts explain.TextOptions
	}{
		"silent":  {in: silent},
		"foreign": {in: foreign},
		"first":   {in: first},
		"moved":   {in: moved},
		"all":     {in: moved, opts: explain.TextOptions{All: true}},
		"one":     {in: moved, only: []string{"c-001"}, opts: explain.TextOptions{All: true}},
		"refused": {in: first, only: []string{"c-003", "c-004"}, opts: explain.TextOptions{All: true}},
		"blind":   {in: blind},
		"tenant":  {in: tenant},
		"attached": {in: explain.Input{
			Template: template(t, `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: settings, uid: u-cm}}`),
			Binding: parse(t, `
metadata: {namespace: shop, name: settings-configmap, labels: {resourcebinding.karmada.io/permanent-id: b-cm}}
spec:
  resource: {apiVersion: v1, kind: ConfigMap, namespace: shop, name: settings, uid: u-cm}
  requiredBy: [{namespace: shop, name: web-deployment, clusters: [{name: c-001}, {name: c-002}]}]
status:
  aggregatedStatus: [{clusterName: c-001, applied: true, health: Healthy}]
`, &workv1alpha2.ResourceBinding{}),
			Policies: first.Policies, Clusters: first.Clusters, Now: noon,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := explain.Explain(tc.in)
			if tc.only != nil {
				e = e.Only(tc.only)
			}
			text := e.Text(tc.opts)
			golden(t, name+".txt", text)
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

// TestJSON compares what programs see with the golden files.
func TestJSON(t *testing.T) {
	in := input(t)
	bind(t, &in)
	in.Clusters = in.Clusters[:6]
	data, err := json.MarshalIndent(explain.Explain(in), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "moved.json", string(data)+"\n")
}

func TestProblems(t *testing.T) {
	edit := func(change func(in *explain.Input)) explain.Input {
		in := input(t)
		change(&in)
		return in
	}
	annotate := func(key, value string) explain.Input {
		return edit(func(in *explain.Input) {
			b := bound(t)
			b.Annotations[key] = value
			in.Binding = b
		})
	}
	cases := map[string]struct {
		in   explain.Input
		want []string
	}{
		"none where all is well":     {input(t), nil},
		"a template without content": {explain.Input{}, []string{explain.ReasonNoPolicy}},
		"a namespace, which every cluster has": {edit(func(in *explain.Input) {
			in.Template = template(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`)
		}), nil},
		"an override, which no policy carries": {edit(func(in *explain.Input) {
			in.Template = template(t, overridePolicy)
		}), nil},
		"requirements that are no number": {edit(func(in *explain.Input) {
			in.Template = template(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: shop, name: web}, spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: lots}}}]}}}}`)
		}), []string{explain.ReasonInvalidTemplate}},
		"a template that is going": {edit(func(in *explain.Input) {
			now := metav1.NewTime(noon)
			in.Template.SetDeletionTimestamp(&now)
		}), []string{explain.ReasonDeleting}},
		"a change that is not taken up": {edit(func(in *explain.Input) {
			bind(t, in)
			in.Binding.SetAnnotations(map[string]string{propagation.DigestAnnotation: "of the template before"})
			in.Template.SetUID("u")
			in.Template.SetCreationTimestamp(metav1.NewTime(noon))
		}), []string{explain.ReasonBehind, explain.ReasonNotApplied}},
		"a manifest that lacks what the control plane fills in": {edit(func(in *explain.Input) {
			bind(t, in)
			in.Binding.SetAnnotations(map[string]string{propagation.DigestAnnotation: "of the template as it is stored"})
		}), []string{explain.ReasonNotApplied}},
		"a binding that is another's": {edit(func(in *explain.Input) {
			b := bound(t)
			b.Spec.Resource.APIVersion = "example.org/v1"
			in.Binding = b
		}), []string{explain.ReasonBindingTaken}},
		"a class of priority that does not exist": {edit(func(in *explain.Input) {
			in.Policies[0].PropagationSpec().SchedulePriority = &policyv1alpha1.SchedulePriority{
				PriorityClassSource: policyv1alpha1.KubePriorityClass, PriorityClassName: "gone",
			}
		}), []string{explain.ReasonNotBound}},
		"a placement that cannot be read": {annotate(policyv1alpha1.PolicyPlacementAnnotation, "{"), []string{explain.ReasonNotApplied, explain.ReasonUnreadableRecord}},
		"a record that cannot be read":    {annotate(workv1alpha2.SchedulingDecisionAnnotation, "[]"), []string{explain.ReasonNotApplied, explain.ReasonUnreadableRecord}},
		"a Work that failed": {edit(func(in *explain.Input) {
			in.Binding = bound(t)
			in.Works = []*workv1alpha1.Work{parse(t, `
metadata: {namespace: karmada-es-c-001, name: web}
status: {conditions: [{type: Applied, status: "False", reason: AppliedFailed, message: "no room"}]}
`, &workv1alpha1.Work{})}
		}), []string{explain.ReasonNotApplied}},
		"a Work that waits since the hub was set back": {edit(func(in *explain.Input) {
			in.Binding = bound(t)
			in.Works = []*workv1alpha1.Work{parse(t, `
metadata: {namespace: karmada-es-c-001, name: web}
status: {conditions: [{type: Applied, status: "False", reason: AppliedFailed, message: "held: would change Deployment shop/web"}]}
`, &workv1alpha1.Work{})}
		}), []string{explain.ReasonNotApplied}},
		"a Work that is overdue": {edit(func(in *explain.Input) {
			in.Binding = bound(t)
			in.Binding.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "c-001", AppliedMessage: rollup.Overdue}}
			in.Works = []*workv1alpha1.Work{parse(t, behindWork, &workv1alpha1.Work{})}
		}), []string{explain.ReasonNotApplied}},
		"a Work that is behind, and not overdue": {edit(func(in *explain.Input) {
			in.Binding = bound(t)
			in.Works = []*workv1alpha1.Work{parse(t, behindWork, &workv1alpha1.Work{})}
		}), nil},
		"a Work that is no more overdue": {edit(func(in *explain.Input) {
			in.Binding = bound(t)
			in.Binding.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "c-001", AppliedMessage: rollup.Overdue}}
			in.Works = []*workv1alpha1.Work{parse(t, strings.ReplaceAll(behindWork, "observedGeneration: 2", "observedGeneration: 3"), &workv1alpha1.Work{})}
		}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range explain.Explain(tc.in).Problems {
				got = append(got, p.Reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSecret checks that changes to the contents of a Secret are not shown.
func TestSecret(t *testing.T) {
	in := input(t)
	in.Template = template(t, `{apiVersion: v1, kind: Secret, metadata: {namespace: shop, name: web, uid: u}, data: {password: b2xk, key: a2V5}}`)
	in.Policies[0].PropagationSpec().ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Secret"}}
	in.Policies[0].PropagationSpec().Placement = policyv1alpha1.Placement{}
	in.Overrides = []policyv1alpha1.Override{parse(t, `
metadata: {namespace: shop, name: passwords}
spec:
  overrideRules:
  - overriders:
      plaintext:
      - {path: /data/password, operator: replace, value: bmV3ZXI=}
      - {path: /data/more, operator: add, value: c2VjcmV0}
      - {path: /data/key, operator: remove}
  - overriders:
      plaintext:
      - {path: /data, operator: remove}
`, &policyv1alpha1.OverridePolicy{})}
	c := cluster(t, "c", "gold", "")
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "Secret"}}}}
	in.Clusters = []*clusterv1alpha1.Cluster{c}
	e := explain.Explain(in)
	if e.Overrides == nil || len(e.Overrides.Clusters) != 1 {
		t.Fatalf("no overrides: %s", e.Text(explain.TextOptions{}))
	}
	policy := explain.Ref{Kind: "OverridePolicy", Namespace: "shop", Name: "passwords"}
	want := []explain.Rule{
		{Policy: policy, Index: 0, Changes: []change.Change{
			{Path: "/data/key", Old: "(4 bytes)"},
			{Path: "/data/more", New: "(8 bytes)"},
			{Path: "/data/password", Old: "(4 bytes)", New: "(8 bytes)"},
		}},
		{Policy: policy, Index: 1, Changes: []change.Change{{Path: "/data", Old: "(2 keys)"}}},
	}
	if diff := cmp.Diff(want, e.Overrides.Clusters[0].Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestWhatIsNotCarried checks that fields that are never sent to a cluster are
// not shown as changed there.
func TestWhatIsNotCarried(t *testing.T) {
	in := input(t)
	in.Overrides = []policyv1alpha1.Override{parse(t, `
metadata: {namespace: shop, name: much}
spec:
  overrideRules:
  - overriders:
      plaintext:
      - {path: /metadata/finalizers, operator: add, value: [a/b]}
      - {path: /metadata/ownerReferences, operator: add, value: [{apiVersion: v1, kind: ConfigMap, name: a, uid: u}]}
      - {path: /metadata/managedFields, operator: add, value: []}
      - {path: /status, operator: add, value: {replicas: 1}}
      labelsOverrider:
      - {operator: add, value: {work.karmada.io/permanent-id: x, tier: front}}
      annotationsOverrider:
      - {operator: add, value: {work.karmada.io/conflict-resolution: overwrite}}
  - overriders:
      labelsOverrider:
      - {operator: add, value: {karmada.io/managed: "false"}}
`, &policyv1alpha1.OverridePolicy{})}
	e := explain.Explain(in)
	if e.Overrides == nil || len(e.Overrides.Clusters) == 0 {
		t.Fatalf("no overrides: %s", e.Text(explain.TextOptions{}))
	}
	got := map[string]string{}
	for _, r := range e.Overrides.Clusters[0].Rules {
		for _, c := range r.Changes {
			got[c.Path] = c.Text()
		}
	}
	want := map[string]string{
		"/metadata/labels/tier":                                      `new: "front"`,
		"/metadata/finalizers":                                       `new: ["a/b"] (not carried)`,
		"/metadata/managedFields":                                    `new: [] (not carried)`,
		"/metadata/ownerReferences":                                  `new: [{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}] (not carried)`,
		"/metadata/annotations/work.karmada.io~1conflict-resolution": `new: "overwrite" (not carried)`,
		"/metadata/labels/karmada.io~1managed":                       `new: "false" (not carried)`,
		"/metadata/labels/work.karmada.io~1permanent-id":             `new: "x" (not carried)`,
		"/status": `new: {"replicas":1} (not carried)`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// TestTextIsSafeForTerminals checks that control characters in texts of members
// and manifests do not reach the terminal.
func TestTextIsSafeForTerminals(t *testing.T) {
	in := input(t)
	bind(t, &in)
	in.Works = nil
	in.Template.SetName("web\x1b]0;owned\a")
	in.Binding.BindingSpec().Resource.Name = in.Template.GetName()
	in.Binding.BindingStatus().AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: in.Clusters[0].Name, AppliedMessage: "no\x1b[2J\u202e\u009b31m"}}
	text := explain.Explain(in).Text(explain.TextOptions{All: true})
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }); i >= 0 {
		t.Errorf("a character that spoils terminals at %d of:\n%q", i, text)
	}
	for _, want := range []string{`web\u001b]0;owned\u0007`, `no\u001b[2J\u202e\u009b31m`} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %s:\n%s", want, text)
		}
	}
}

// BenchmarkExplain measures one explanation with a hundred clusters and two
// terms.
func BenchmarkExplain(b *testing.B) {
	in := input(b)
	bind(b, &in)
	b.ReportAllocs()
	for b.Loop() {
		explain.Explain(in)
	}
}
