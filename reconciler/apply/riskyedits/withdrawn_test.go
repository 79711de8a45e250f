package riskyedits_test

import (
	order "cmp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/riskyedits"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// webWithMaps is the Deployment, with the ConfigMaps that it refers to.
const webWithMaps = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, labels: {app: web}},
  spec: {template: {spec: {containers: [{name: app, envFrom: [{configMapRef: {name: m1}}, {configMapRef: {name: m2}}, {configMapRef: {name: m3}}, {configMapRef: {name: m4}}]}]}}}}`

// along is the binding of an object that goes along with users in both clusters.
func along(kind, name string, users ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName(kind, name)},
		Spec:       workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: "shop", Name: name}},
	}
	for _, user := range users {
		b.Spec.RequiredBy = append(b.Spec.RequiredBy, workv1alpha2.BindingSnapshot{
			Namespace: "shop", Name: workv1alpha2.BindingName("Deployment", user), Clusters: []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}},
		})
	}
	return b
}

// takesAlong makes the first policy take along what its templates refer to, and adds objects that do.
func takesAlong(t *testing.T, deps bool, more ...client.Object) client.Client {
	t.Helper()
	c := hub(t, more...)
	for _, obj := range []client.Object{&policyv1alpha1.PropagationPolicy{}, &workv1alpha2.ResourceBinding{}} {
		key := client.ObjectKey{Namespace: "shop", Name: "all"}
		if _, binding := obj.(*workv1alpha2.ResourceBinding); binding {
			key.Name = workv1alpha2.BindingName("Deployment", "web")
		}
		if err := c.Get(t.Context(), key, obj); err != nil {
			t.Fatal(err)
		}
		switch obj := obj.(type) {
		case *policyv1alpha1.PropagationPolicy:
			obj.Spec.PropagateDeps = deps
		case *workv1alpha2.ResourceBinding:
			obj.Spec.PropagateDeps = true // also where somebody has just edited the policy
		}
		if err := c.Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestWhatGoesAlongIsNotWithdrawn: a policy that stops to take along what its templates still refer to is refused.
func TestWhatGoesAlongIsNotWithdrawn(t *testing.T) {
	edited := func(text string, changes ...string) string { return strings.NewReplacer(changes...).Replace(text) }
	off := edited(everything, "kind: Deployment}", "kind: Deployment, name: web}", ", {apiVersion: v1, kind: ConfigMap}", "") // without the field
	on := edited(off, "spec: {", "spec: {propagateDeps: true, ")
	maps := func(users ...string) (out []client.Object) {
		for _, name := range []string{"m1", "m2", "m3", "m4"} {
			out = append(out, along("ConfigMap", name, users...))
		}
		return out
	}
	// other is the binding of another Deployment, by a policy of its own that takes along.
	const otherPolicy = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: api, namespace: shop, labels: {propagationpolicy.karmada.io/permanent-id: id-api}},
  spec: {propagateDeps: true, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: api}], placement: {clusterAffinity: {clusterNames: [east, west]}}}}`
	other := func() client.Object {
		b := along("Deployment", "api")
		b.Spec.Resource.APIVersion, b.Spec.PropagateDeps, b.Spec.Clusters = "apps/v1", true, []workv1alpha2.TargetCluster{{Name: "east"}, {Name: "west"}}
		propagation.ClaimOf(&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "id-api"}}}).Set(b)
		return b
	}
	preserved := along("ConfigMap", "m1", "web")
	preserved.Spec.PreserveResourcesOnDeletion = ptr.To(true)
	const still = "propagateDeps is off, and Deployment shop/web still refers to what went along: "
	const four = "would take 4 objects (ConfigMap shop/m1, ConfigMap shop/m2, ConfigMap shop/m3, …) out of east, west"
	const data = "a PersistentVolumeClaim goes with its data: PropagationPolicy/shop/all would take 1 object (PersistentVolumeClaim shop/data) out of east, west"
	claim := func() client.Object { return along("PersistentVolumeClaim", "data", "web") }
	wide := edited(off, "kind: PropagationPolicy", "kind: ClusterPropagationPolicy", "name: all, namespace: shop", "name: wide, labels: {clusterpropagationpolicy.karmada.io/permanent-id: id-wide}")
	cases := map[string]struct {
		wants   []string // besides the Deployment
		web     string   // the Deployment with the revision, if it changes
		removed []string
		there   []client.Object
		live    bool // somebody has switched it off on the control plane
		allowed string
		want    string
	}{
		"it takes along as before":                  {wants: []string{on}, there: maps("web")},
		"it takes nothing along any more":           {wants: []string{off}, there: maps("web"), want: still + "PropagationPolicy/shop/all " + four},
		"it says false":                             {wants: []string{edited(on, "true", "false")}, there: maps("web"), want: still + "PropagationPolicy/shop/all " + four},
		"nothing went along":                        {wants: []string{off}},
		"somebody has switched it off with kubectl": {wants: []string{off}, there: maps("web"), live: true},
		"the revision is allowed to":                {wants: []string{off}, there: maps("web"), allowed: "main@sha1:1"},
		"the policy is":                             {wants: []string{off}, there: maps("web"), allowed: "propagationpolicy/shop/all"},
		"a claim is named, and nothing else is": {
			wants: []string{off}, there: append(maps("web"), claim()), allowed: "persistentvolumeclaim/shop/data", want: still + "PropagationPolicy/shop/all " + four,
		},
		"a claim goes along, and stays in clusters":         {wants: []string{off}, there: append(maps("web"), claim()), want: still + "PropagationPolicy/shop/all " + four},
		"the Deployment refers to none any more":            {wants: []string{off}, there: maps("web"), web: web},
		"the Deployment does not refer to some any more":    {wants: []string{off}, web: edited(webWithMaps, "{configMapRef: {name: m1}}, ", "", "{configMapRef: {name: m2}}, ", ""), there: maps("web"), want: still + "PropagationPolicy/shop/all would take 2 objects (ConfigMap shop/m3, ConfigMap shop/m4) out of east, west"},
		"another Deployment takes them along, too":          {wants: []string{off}, there: append(maps("web", "api"), other(), object(t, otherPolicy))},
		"another one does, and stops to in the same commit": {wants: []string{off, edited(otherPolicy, "propagateDeps: true, ", "")}, there: append(maps("web", "api"), other(), object(t, otherPolicy)), want: still + "PropagationPolicy/shop/all " + four + "; " + edited(still, "shop/web", "shop/api") + "PropagationPolicy/shop/api " + four},
		"a claim of two Deployments leaves a cluster with both": {
			wants: []string{edited(on, "[east, west]", "[east]"), edited(otherPolicy, "[east, west]", "[east]")}, there: []client.Object{along("PersistentVolumeClaim", "data", "web", "api"), other(), object(t, otherPolicy)},
			want: edited(data, "east, west", "west") + "; " + edited(data, "east, west", "west", "shop/all", "shop/api"),
		},
		"what is preserved stays in the clusters":            {wants: []string{off}, there: []client.Object{preserved}},
		"the policy is dropped, and what runs stays":         {removed: []string{on}, there: maps("web")},
		"another policy takes its place, and takes nothing":  {removed: []string{on}, wants: []string{edited(off, "name: all", "name: anew")}, there: maps("web"), want: still + "PropagationPolicy/shop/anew " + four},
		"another policy takes its place, and takes along":    {removed: []string{on}, wants: []string{edited(on, "name: all", "name: anew")}, there: maps("web")},
		"one that stays as it is takes its place":            {removed: []string{on}, there: append(maps("web"), object(t, wide)), want: still + "ClusterPropagationPolicy/wide " + four},
		"a policy with ServiceImports takes along by itself": {wants: []string{edited(off, "resourceSelectors: [", "resourceSelectors: [{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport}, ")}, there: maps("web")},
	}
	carriesMaps := edited(everything, "{apiVersion: apps/v1, kind: Deployment}, ", "", "name: all", "name: maps")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := takesAlong(t, !tc.live, tc.there...)
			r := riskyedits.Revision{Name: "main@sha1:1", Seen: applier.Observed{}, Allowed: inventory.AllowanceOf(tc.allowed, "", "main@sha1:1")}
			there := object(t, webWithMaps)
			r.Seen[inventory.IDOf(there)] = there
			for _, text := range tc.wants {
				r.Changes = append(r.Changes, applier.Change{Desired: object(t, text), Action: applier.Configured})
			}
			r.Changes = append(r.Changes, applier.Change{Desired: object(t, order.Or(tc.web, webWithMaps)), Action: applier.Configured})
			for _, text := range tc.removed {
				r.Removed = append(r.Removed, inventory.IDOf(object(t, text)))
			}
			check(t, c, r, tc.want)
			// A policy that comes to carry the ConfigMaps keeps them where they are.
			r.Changes = append(r.Changes, applier.Change{Desired: object(t, carriesMaps), Action: applier.Created})
			if !strings.Contains(tc.want, "PersistentVolumeClaim") {
				check(t, c, r, "")
			}
		})
	}
}

// check expects a revision to be refused in these words; not if they are empty.
func check(t *testing.T, c client.Client, r riskyedits.Revision, want string) {
	t.Helper()
	got := ""
	if err := riskyedits.Check(t.Context(), c, r); err != nil {
		got, _, _ = strings.Cut(err.Error(), "; revision main@sha1:1 is not applied")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
