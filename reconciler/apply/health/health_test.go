package health_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// templates are the templates in a store; those of other kinds are unknown.
type templates map[templatestore.Key]*unstructured.Unstructured

func (m templates) Get(_ context.Context, key templatestore.Key) (*unstructured.Unstructured, templatestore.Presence, error) {
	if obj, ok := m[key]; ok {
		return obj, templatestore.Present, nil
	}
	for known := range m {
		if known.GroupVersionKind == key.GroupVersionKind {
			return nil, templatestore.Absent, nil
		}
	}
	return nil, templatestore.Unknown, nil
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), obj); err != nil {
		t.Fatal(err)
	}
	labels := inventory.OwnerLabels(owner)
	maps.Copy(labels, obj.GetLabels())
	obj.SetLabels(labels)
	return obj
}

// owner is the Kustomization that applied the objects.
var owner = client.ObjectKey{Namespace: "team", Name: "web"}

func entryOf(obj *unstructured.Unstructured) inventory.Entry {
	return inventory.Entry{ID: inventory.IDOf(obj), Version: obj.GroupVersionKind().Version}
}

const (
	config     = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web","labels":{"app":"web"}},"data":{"state":"good"}}`
	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","generation":1},"spec":{"replicas":1}}`
	refused    = `{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"namespace":"shop","name":"web","generation":1},"status":{"observedGeneration":-1,"conditions":[{"type":"Ready","status":"False","reason":"SharedObject","message":"it stands in two"}]}}`
	widget     = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":"shop","name":"web","generation":1},"status":{"conditions":[{"type":"Stalled","status":"True","reason":"Broken","message":"it is broken"}]}}`
)

func policy(selector policyv1alpha1.ResourceSelector) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       policyv1alpha1.PropagationSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{selector}},
	}
}

// binding of the template to the cluster east; the digest is that of the
// version that it was made from.
func binding(t *testing.T, template *unstructured.Unstructured) *workv1alpha2.ResourceBinding {
	t.Helper()
	digest, err := propagation.Digest(template)
	if err != nil {
		t.Fatal(err)
	}
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: template.GetNamespace(), Name: workv1alpha2.BindingName(template.GetKind(), template.GetName()),
			Annotations: map[string]string{propagation.DigestAnnotation: digest},
		},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource: workv1alpha2.ObjectReference{APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(), Name: template.GetName()},
			Clusters: []workv1alpha2.TargetCluster{{Name: "east"}},
		},
	}
	propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.Namespace, Name: "web", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "web"},
	}}).Set(b)
	return b
}

// work that carries the version of the binding, healthy.
func work(b *workv1alpha2.ResourceBinding) *workv1alpha1.Work {
	return &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   workv1alpha2.ExecutionNamespace("east"),
			Name:        workv1alpha2.WorkName(b.Spec.Resource.Kind, b.Spec.Resource.Name, b.Spec.Resource.Namespace),
			Annotations: b.Annotations,
		},
		Status: workv1alpha1.WorkStatus{
			Conditions:       []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}},
			ManifestStatuses: []workv1alpha1.ManifestStatus{{Health: workv1alpha1.ResourceHealthy}},
		},
	}
}

func changed(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	labels := inventory.OwnerLabels(owner)
	labels["changed"] = "yes"
	out.SetLabels(labels)
	return out
}

type scene struct {
	objects  []client.Object
	template *unstructured.Unstructured
	unknown  bool
	checks   []kustomize.CustomHealthCheck
	state    rollup.State
	reason   string
	// part is what the rollup gets; nil for what is not propagated.
	part *rollup.Part
}

// waiting annotates a template: its Lazy policy waits for its next change.
func waiting(t *testing.T, obj *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	edition, err := propagation.Edition(obj)
	if err != nil {
		t.Fatal(err)
	}
	noted := obj.DeepCopy()
	noted.SetAnnotations(map[string]string{propagation.WaitsAnnotation: edition})
	return noted
}

var midnight = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func cluster(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// silentCluster is one that has been unreachable since midnight.
func silentCluster(name string) *clusterv1alpha1.Cluster {
	c := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: clusterv1alpha1.ClusterNotReachableReason, LastTransitionTime: metav1.NewTime(midnight),
	}}
	return c
}

func scenes(t *testing.T) map[string]scene {
	t.Helper()
	cm, deploy, custom := object(t, config), object(t, deployment), object(t, widget)
	bound := binding(t, cm)
	other := binding(t, object(t, `{"apiVersion":"example.com/v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web"}}`))
	all := policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap"}
	waits := func(reason string) *rollup.Part {
		return &rollup.Part{Object: "ConfigMap shop/web", State: rollup.Progressing, Reason: reason}
	}
	east := func(state rollup.State, reason string) *rollup.Part {
		return &rollup.Part{Object: "ConfigMap shop/web", Clusters: []rollup.ClusterPart{{Name: "east", State: state, Reason: reason, Applied: state == rollup.Healthy, Outdated: strings.Contains(reason, "not sent")}}}
	}
	mistyped, misnamed := binding(t, cm), east(rollup.Healthy, "")
	mistyped.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east", "wst", "mars"}}}
	misnamed.Absent = []propagation.Stranger{{Name: "mars"}, {Name: "wst", Meant: "west"}}
	secretive, unnamed := mistyped.DeepCopy(), east(rollup.Healthy, "")
	propagation.RecordSecrets(secretive, &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{gitopsv1alpha1.HoldsSecretsAnnotation: gitopsv1alpha1.HoldsInFields}}})
	unnamed.Absent = []propagation.Stranger{{}, {Meant: "west"}}
	unseen := waits("waits to be taken up by its policy")
	unseen.Former = []rollup.ClusterPart{{Name: "east", Outdated: true}}
	silent := east(rollup.Unknown, "unreachable since 2026-01-01 00:00 UTC; last heard: healthy")
	silent.Clusters[0].Silence = &rollup.Silence{Cause: "unreachable", Since: midnight.Local(), Away: true}
	let, forgotten := binding(t, deploy), east(rollup.Healthy, "")
	propagation.Unclaim(let)
	forgotten.Object, forgotten.State, forgotten.Reason = "Deployment shop/web", rollup.Progressing, "no policy carries it any more"
	forgotten.Clusters, forgotten.Former = nil, forgotten.Clusters
	thing := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"namespace":"shop","name":"web"}}`)
	letThing := binding(t, thing)
	propagation.Unclaim(letThing)
	forgottenThing := &rollup.Part{Object: "Thing shop/web", State: rollup.Progressing, Reason: "no policy carries it any more", Former: forgotten.Former}
	const left = "is left to Lane, as its label resourcetemplate.karmada.io/claimed-by says: remove the label, and its policy carries it"
	leftBound := waits(left)
	leftBound.Former = unseen.Former
	return map[string]scene{
		"nobody propagates it": {template: cm},
		"bound, sent and healthy, and no policy carries it any more": {template: deploy, objects: []client.Object{let, work(let)}, part: forgotten},
		"nobody propagates a Deployment, which then never runs": {
			template: deploy, state: rollup.Progressing, reason: "no policy propagates it, and nothing runs on the control plane itself",
			part: &rollup.Part{Object: "Deployment shop/web", State: rollup.Progressing, Reason: "no policy carries it"},
		},
		"nobody propagates a kind that runs Pods, which nobody has looked at": {
			template: deploy, unknown: true, state: rollup.Progressing, reason: "no policy propagates it, and nothing runs on the control plane itself",
			part: &rollup.Part{Object: "Deployment shop/web", State: rollup.Progressing, Reason: "no policy carries it"},
		},
		"bound, sent and healthy, a kind of others, and no policy carries it any more": {template: thing, objects: []client.Object{letThing, work(letThing)}, part: forgottenThing},
		"nobody propagates a kind of others that runs Pods": {
			template: object(t, `{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","metadata":{"namespace":"shop","name":"web"}}`),
			state:    rollup.Progressing, reason: "no policy propagates it, and nothing runs on the control plane itself",
			part: &rollup.Part{Object: "Rollout shop/web", State: rollup.Progressing, Reason: "no policy carries it"},
		},
		"nobody propagates one, and it runs where it is": {
			template: object(t, `{"apiVersion":"argoproj.io/v1alpha1","kind":"Rollout","metadata":{"namespace":"shop","name":"web"},"status":{"phase":"Healthy"}}`),
			part:     &rollup.Part{Object: "Rollout shop/web", State: rollup.Progressing, Reason: "no policy carries it"},
		},
		"nobody propagates a claim, which then holds nothing": {
			template: object(t, `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"shop","name":"data"}}`),
			state:    rollup.Progressing, reason: "no policy propagates it, and nothing runs on the control plane itself",
		},
		"it says why it is not ready":        {template: object(t, refused), state: rollup.Progressing, reason: "it stands in two"},
		"its own status says that it failed": {template: custom, state: rollup.Failed, reason: "it is broken"},
		"a policy selects it, and is not heard of yet": {
			template: cm, objects: []client.Object{policy(all)},
			state: rollup.Progressing, reason: "waits to be taken up by its policy", part: waits("waits to be taken up by its policy"),
		},
		"a policy selects it, and its label leaves it to somebody else": {
			template: leftTo("Lane", cm), objects: []client.Object{policy(all)}, state: rollup.Progressing, reason: left, part: waits(left),
		},
		"bound, and its label leaves it to somebody else since": {
			template: leftTo("Lane", changed(cm)), objects: []client.Object{bound, work(bound)}, state: rollup.Progressing, reason: left, part: leftBound,
		},
		"a Lazy policy has claimed it, and it waits": {
			template: waiting(t, cm), objects: []client.Object{policy(all)},
			reason: "waits for its next change, as its policy is Lazy",
		},
		"a policy may select it by labels that are not known": {
			template: cm, unknown: true, objects: []client.Object{policy(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}})},
			state: rollup.Progressing, reason: "waits to be taken up by its policy", part: waits("waits to be taken up by its policy"),
		},
		"a policy selects another one":  {template: cm, objects: []client.Object{policy(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "ConfigMap", Name: "api"})}},
		"a policy selects another kind": {template: cm, objects: []client.Object{policy(policyv1alpha1.ResourceSelector{APIVersion: "v1", Kind: "Secret"})}},
		"a binding of another group":    {template: cm, objects: []client.Object{other}},
		"bound, and nothing sent":       {template: cm, objects: []client.Object{bound}, state: rollup.Progressing, reason: "east: not sent yet", part: east(rollup.Progressing, "not sent yet")},
		"bound, sent and healthy":       {template: cm, objects: []client.Object{bound, work(bound)}, part: east(rollup.Healthy, "")},
		"bound, sent and healthy, and meant for clusters that are not there": {
			template: cm, objects: []client.Object{mistyped, work(mistyped), cluster("east"), cluster("west")}, part: misnamed,
		},
		"meant for clusters that are not there, by a policy that text of a Secret is in": {
			template: cm, objects: []client.Object{secretive, work(secretive), cluster("east"), cluster("west")}, part: unnamed,
		},
		"bound, sent and healthy when its cluster was last heard of": {
			template: cm, objects: []client.Object{bound, work(bound), silentCluster("east")},
			state: rollup.Unknown, reason: "east: unreachable since 2026-01-01 00:00 UTC; last heard: healthy", part: silent,
		},
		"bound, with a version not seen": {template: changed(cm), objects: []client.Object{bound, work(bound)}, state: rollup.Progressing, reason: "waits to be taken up by its policy", part: unseen},
		"bound, with an older version in the cluster": {
			template: changed(cm), objects: []client.Object{binding(t, changed(cm)), work(bound)},
			state: rollup.Progressing, reason: "east: latest version not sent yet", part: east(rollup.Progressing, "latest version not sent yet"),
		},
		"judged by an expression": {
			template: cm, checks: []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "ConfigMap", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "data.state == 'bad'", Failed: "data.state == 'good'"}}},
			state: rollup.Failed,
		},
	}
}

// leftTo returns a template with the label that another kind takes care of it, so that policies leave it alone.
func leftTo(kind string, template *unstructured.Unstructured) *unstructured.Unstructured {
	out := template.DeepCopy()
	labels := out.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[workv1alpha2.ResourceTemplateClaimedByLabel] = kind
	out.SetLabels(labels)
	return out
}

// hubOf returns a hub with these objects, which finds Works by the bindings that they are of.
func hubOf(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).
		WithIndex(&workv1alpha1.Work{}, bindings.WorksByOwner, func(obj client.Object) []string {
			key, _ := bindings.OwnerOf(obj.(*workv1alpha1.Work))
			return []string{key.String()}
		}).Build()
}

func TestHealth(t *testing.T) {
	for name, tc := range scenes(t) {
		t.Run(name, func(t *testing.T) {
			hub := hubOf(tc.objects...)
			known := templates{}
			if !tc.unknown {
				known[templatestore.KeyOf(tc.template)] = tc.template
			}
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: known})
			e := entryOf(tc.template)

			got, err := reader.Assess(t.Context(), health.Request{
				Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: tc.template}, As: hub, Checks: tc.checks,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]health.Verdict{{ID: e.ID, State: tc.state, Reason: tc.reason}}, got.Verdicts); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			var want []rollup.Part
			if tc.part != nil {
				want = []rollup.Part{*tc.part}
			}
			parts, err := reader.Parts(t.Context(), owner, []inventory.Entry{e})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestApplied: whether a revision is applied where it belongs does not depend on its health there.
func TestApplied(t *testing.T) {
	missing := map[string]bool{
		"a policy selects it, and is not heard of yet": true, "a policy may select it by labels that are not known": true, "bound, and nothing sent": true,
		"bound, sent and healthy when its cluster was last heard of": true, "bound, with a version not seen": true, "nobody propagates a Deployment, which then never runs": true, "nobody propagates a kind that runs Pods, which nobody has looked at": true, "bound, with an older version in the cluster": true,
		"nobody propagates a kind of others that runs Pods": true, "nobody propagates one, and it runs where it is": true,
		"a policy selects it, and its label leaves it to somebody else": true, "bound, and its label leaves it to somebody else since": true,
	}
	all := scenes(t)
	cm := object(t, config)
	failing, released, unhealthy := binding(t, cm), binding(t, changed(cm)), binding(t, cm)
	propagation.Unclaim(released)
	refused, starting := work(failing), work(unhealthy)
	refused.Status.Conditions[0].Status, refused.Status.Conditions[0].Message = metav1.ConditionFalse, "no quota"
	starting.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy
	all["refused in its cluster"], missing["refused in its cluster"] = scene{template: cm, objects: []client.Object{failing, refused}}, true
	all["starting in its cluster"] = scene{template: cm, objects: []client.Object{unhealthy, starting}}
	all["carried by no policy any more"] = scene{template: cm, objects: []client.Object{released}}
	for name, tc := range all {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.objects...).WithStatusSubresource().Build()
			e := entryOf(tc.template)
			got, err := health.New(health.Deps{Hub: hub, Live: hub}).Assess(t.Context(), health.Request{
				Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: tc.template}, As: hub, Checks: tc.checks, Applied: true, Runs: true,
			})
			if err != nil {
				t.Fatal(err)
			}
			if stands := got.Verdicts[0].State == rollup.Healthy; stands == missing[name] || len(got.Replaced.In([]workv1alpha2.TargetCluster{{Name: "east"}})) == 1 != stands {
				t.Errorf("assessed as %+v, replaced as %+v", got.Verdicts, got.Replaced)
			}
		})
	}
}

func TestHealthOfWhatIsNotThere(t *testing.T) {
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
	reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}})
	missing := inventory.Entry{ID: inventory.ID{Namespace: "shop", Name: "web", GroupKind: schema.GroupKind{Kind: "ConfigMap"}}, Version: "v1"}
	got, err := reader.Assess(t.Context(), health.Request{Entries: []inventory.Entry{missing}, As: hub})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]health.Verdict{{ID: missing.ID, State: rollup.Progressing, Reason: "does not exist"}}, got.Verdicts); diff != "" {
		t.Errorf("verdict (-want +got):\n%s", diff)
	}
	_, err = reader.Assess(t.Context(), health.Request{Checks: []kustomize.CustomHealthCheck{{HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "("}}}})
	if e := loop.As(err, ""); e == nil || e.Class != loop.ClassStalled || e.Reason != "InvalidCELExpression" {
		t.Errorf("error = %v, want one that stalls", err)
	}
}

// TestHealthOfAKustomization: if a Kustomization waits for a silent cluster, its own health is not known, so that those
// that wait for it do not time out.
func TestHealthOfAKustomization(t *testing.T) {
	const child = `{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": {"name": "two", "namespace": "flux-system", "generation": 1}, "spec": {},
  "status": {"observedGeneration": -1, "conditions": [{"type": "Ready", "status": %q, "reason": %q, "message": "west is silent"}]}}`
	for name, tc := range map[string]struct {
		status, reason string
		want           rollup.State
		says           string
	}{
		"it hears nothing of a cluster": {"Unknown", "ClusterSilent", rollup.Unknown, "west is silent"},
		"it has failed":                 {"False", "BuildFailed", rollup.Progressing, "west is silent"},
		"it waits for another":          {"False", "DependencyNotReady", rollup.Progressing, "west is silent"},
		"it is on its way":              {"Unknown", "Progressing", rollup.Progressing, "Kustomization generation is 1, but latest observed generation is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
			obj := object(t, fmt.Sprintf(child, tc.status, tc.reason))
			e := entryOf(obj)
			got, err := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}}).Assess(t.Context(), health.Request{
				Entries: []inventory.Entry{e}, Observed: map[inventory.ID]*unstructured.Unstructured{e.ID: obj}, As: hub,
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]health.Verdict{{ID: e.ID, State: tc.want, Reason: tc.says, Follows: tc.reason == "DependencyNotReady"}}, got.Verdicts); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}
