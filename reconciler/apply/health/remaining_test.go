package health_test

import (
	"encoding/json"
	"maps"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/policies/rollup"
	"github.com/flotilla-io/flotilla/reconciler/apply/health"
	"github.com/flotilla-io/flotilla/reconciler/bindings"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/templatestore"
)

// held is a Work in west that holds an object as a Kustomization applied it.
func workWith(t *testing.T, text string, by client.ObjectKey, change ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	t.Helper()
	obj := object(t, text)
	obj.SetLabels(inventory.OwnerLabels(by))
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	w := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workv1alpha2.ExecutionNamespace("west"), Name: workv1alpha2.WorkName(obj.GetKind(), obj.GetName(), obj.GetNamespace()),
			Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "b"},
			Annotations: map[string]string{
				workv1alpha2.ResourceBindingNamespaceAnnotationKey: obj.GetNamespace(), workv1alpha2.ResourceBindingNameAnnotationKey: workv1alpha2.BindingName(obj.GetKind(), obj.GetName()),
			},
		},
		Spec: workv1alpha1.WorkSpec{Workload: workv1alpha1.WorkloadTemplate{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}},
	}
	for _, c := range change {
		c(w)
	}
	return w
}

func deleted(w *workv1alpha1.Work) {
	w.DeletionTimestamp, w.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"test/wait"}
}

// blocked reports that a cluster cannot remove an object.
func blocked(w *workv1alpha1.Work) {
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkDeletionBlocked, Status: metav1.ConditionTrue, Message: "ConfigMap theirs is in it"}}
}

const namespace = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`

// TestWhatRemainsOfKustomizations: what left with a Kustomization is reported for as long as a cluster holds it and no
// other Kustomization reports it.
func TestWhatRemainsOfKustomizations(t *testing.T) {
	child := client.ObjectKey{Namespace: "team", Name: "chi"}
	childID := inventory.ID{Namespace: "team", Name: "chi", GroupKind: schema.GroupKind{Group: "kustomize.toolkit.fluxcd.io", Kind: "Kustomization"}}
	cm, space := object(t, config), object(t, namespace)
	ids := []inventory.ID{childID, inventory.IDOf(cm), inventory.IDOf(space)}
	there := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "chi"}}
	live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	leaving := func(object, reason string) []rollup.Part {
		return []rollup.Part{{Object: object, Leaving: []rollup.ClusterPart{{Name: "west", State: rollup.Progressing, Reason: reason}}}}
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		hub     bool // the ConfigMap exists on the control plane
		taken   bool // it does, and another Kustomization has it
		remains []inventory.ID
		parts   []rollup.Part
	}{
		"nothing is held":                                         {},
		"a cluster holds what left with one":                      {objects: []client.Object{workWith(t, config, child, deleted)}, remains: ids[:2], parts: leaving("ConfigMap shop/web", "not removed yet")},
		"its Work is about to be deleted":                         {objects: []client.Object{workWith(t, config, child)}, remains: ids[:2], parts: leaving("ConfigMap shop/web", "not removed yet")},
		"it was left on the control plane":                        {objects: []client.Object{workWith(t, config, child)}, hub: true, remains: ids[:2]},
		"the Kustomization is there again":                        {objects: []client.Object{workWith(t, config, child, deleted), there}, remains: ids[:2]},
		"another one has applied it meanwhile":                    {objects: []client.Object{workWith(t, config, client.ObjectKey{Namespace: "team", Name: "other"}, deleted)}},
		"another one has taken it over, and its Work will say so": {objects: []client.Object{workWith(t, config, child)}, taken: true},
		"another one has taken a Namespace over": {objects: []client.Object{workWith(t, namespace, owner),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "other"})}}}},
		"it is the Kustomization's own":            {objects: []client.Object{workWith(t, config, owner, deleted)}, remains: ids[1:2], parts: leaving("ConfigMap shop/web", "not removed yet")},
		"a cluster refuses to delete a Namespace":  {objects: []client.Object{workWith(t, namespace, owner, deleted, blocked)}, remains: ids[2:], parts: leaving("Namespace shop", "not removed yet: ConfigMap theirs is in it")},
		"a Namespace that stays on purpose":        {objects: []client.Object{workWith(t, namespace, owner), live}, remains: ids[2:]},
		"a Namespace whose Work goes in a moment":  {objects: []client.Object{workWith(t, namespace, owner)}, remains: ids[2:], parts: leaving("Namespace shop", "not removed yet")},
		"a Namespace that left with Kustomization": {objects: []client.Object{workWith(t, namespace, child, deleted)}, remains: []inventory.ID{ids[0], ids[2]}, parts: leaving("Namespace shop", "not removed yet")},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(tc.objects, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}})
			hub := hubOf(objects...)
			known := templates{templatestore.Key{GroupVersionKind: cm.GroupVersionKind(), Name: "other"}: cm}
			if tc.hub {
				known[templatestore.KeyOf(cm)] = cm
			}
			if tc.taken {
				theirs := cm.DeepCopy()
				theirs.SetLabels(inventory.OwnerLabels(client.ObjectKey{Namespace: "team", Name: "other"}))
				known[templatestore.KeyOf(cm)] = theirs
			}
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: known})
			got, err := reader.Remaining(t.Context(), owner, ids)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.remains, got); diff != "" {
				t.Errorf("remains (-want +got):\n%s", diff)
			}
			parts, err := reader.RemainingParts(t.Context(), owner, ids)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.parts, parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPartsOfNamespaces: they are synced to clusters without a policy.
func TestPartsOfNamespaces(t *testing.T) {
	live := func(by client.ObjectKey, change ...func(*corev1.Namespace)) *corev1.Namespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: inventory.OwnerLabels(by)}}
		for _, c := range change {
			c(ns)
		}
		return ns
	}
	applied := func(status metav1.ConditionStatus, message string) func(*workv1alpha1.Work) {
		return func(w *workv1alpha1.Work) {
			w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: status, Message: message}}
		}
	}
	heard := metav1.Now().Rfc3339Copy()
	silent := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{
		{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", LastTransitionTime: heard},
	}}}
	calm := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string // of the rollup; empty: no part
	}{
		"a cluster has it":                       {[]client.Object{live(owner), calm, workWith(t, namespace, owner, applied(metav1.ConditionTrue, ""))}, "success 1/1 clusters ready"},
		"a cluster has yet to get it":            {[]client.Object{live(owner), calm, workWith(t, namespace, owner)}, "pending 0/1 clusters ready: west waits for Namespace shop: not applied yet"},
		"a cluster refuses it":                   {[]client.Object{live(owner), calm, workWith(t, namespace, owner, applied(metav1.ConditionFalse, "no quota"))}, "failure 0/1 clusters ready: west failed on Namespace shop: no quota"},
		"it was sent nowhere yet":                {[]client.Object{live(owner), calm}, "pending Namespace shop: not sent to any cluster yet"},
		"there are no clusters":                  {[]client.Object{live(owner)}, ""},
		"it stays on the control plane":          {[]client.Object{live(owner, func(ns *corev1.Namespace) { ns.Labels["namespace.karmada.io/skip-auto-propagation"] = "true" }), calm}, ""},
		"another Kustomization applied it":       {[]client.Object{live(client.ObjectKey{Namespace: "team", Name: "other"}), calm, workWith(t, namespace, owner)}, ""},
		"a cluster that fell silent has it":      {[]client.Object{live(owner), silent, workWith(t, namespace, owner, applied(metav1.ConditionTrue, ""))}, "success 1/1 clusters ready"},
		"a cluster is silent before it gets one": {[]client.Object{live(owner), silent, workWith(t, namespace, owner)}, "pending 0/1 clusters ready: west unreachable since " + heard.UTC().Format("2006-01-02 15:04 UTC")},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.objects...).Build()
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{}})
			parts, err := reader.Parts(t.Context(), owner, []inventory.Entry{{ID: inventory.ID{Name: "shop", GroupKind: schema.GroupKind{Kind: "Namespace"}}, Version: "v1"}})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(parts) > 0 {
				sum := rollup.Revision(parts)
				got = sum.State + " " + sum.Description
			}
			if got != tc.want {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}

// A Namespace that opts out of the sync is a template like others: it counts where its policy places it, and where a
// cluster has yet to remove it.
func TestPartsOfANamespaceThatAPolicyCarries(t *testing.T) {
	space := object(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"namespace.karmada.io/skip-auto-propagation":"true"}}}`)
	live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: space.GetLabels()}}
	placed := binding(t, space)
	bound := &workv1alpha2.ClusterResourceBinding{ObjectMeta: placed.ObjectMeta, Spec: placed.Spec}
	propagation.ClaimOf(&policyv1alpha1.ClusterPropagationPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: "west", Labels: map[string]string{policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "west"},
	}}).Set(bound)
	bound.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel] = "b"
	former := workWith(t, namespace, owner, deleted, func(w *workv1alpha1.Work) {
		w.Labels = map[string]string{workv1alpha2.ClusterResourceBindingPermanentIDLabel: "b"}
		w.Annotations = map[string]string{workv1alpha2.ClusterResourceBindingAnnotationKey: bound.Name}
	})
	has := work(placed)
	has.Labels, has.Annotations = former.Labels, maps.Clone(former.Annotations)
	has.Annotations[propagation.DigestAnnotation] = placed.Annotations[propagation.DigestAnnotation]
	clusters := []client.Object{cluster("east"), cluster("west"), live}
	for name, tc := range map[string]struct {
		objects []client.Object
		want    string // of the rollup; empty: no part
	}{
		"no policy carries it":        {nil, ""},
		"a cluster has yet to get it": {[]client.Object{bound}, "pending 0/1 clusters ready: east waits for Namespace shop: not sent yet"},
		"a cluster has it":            {[]client.Object{bound, has}, "success 1/1 clusters ready"},
		"it moved, and the cluster before has it, too": {
			[]client.Object{bound, has, former}, "pending 1/2 clusters ready: west waits for Namespace shop: not removed yet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(tc.objects, clusters...)...).
				WithIndex(&workv1alpha1.Work{}, bindings.WorksByID, func(obj client.Object) []string {
					return []string{bindings.IDOf(obj.(*workv1alpha1.Work))}
				}).Build()
			reader := health.New(health.Deps{Hub: hub, Live: hub, Templates: templates{templatestore.KeyOf(space): space}})
			parts, err := reader.Parts(t.Context(), owner, []inventory.Entry{entryOf(space)})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if len(parts) > 0 {
				sum := rollup.Revision(parts)
				got = sum.State + " " + sum.Description
			}
			if got != tc.want {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
