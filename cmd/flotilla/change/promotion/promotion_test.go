package promotion_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change/promotion"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// web is the object of the tests.
var web = promotion.Object{GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Namespace: "shop", Name: "web"}

func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	d.Spec.Replicas = ptr.To[int32](2)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1", EnvFrom: []corev1.EnvFromSource{{
		ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
	}}}}
	if change != nil {
		change(d)
	}
	return d
}

func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
}

func cluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
}

func settings(color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}, Data: map[string]string{"color": color}}
}

// side is one of the two servers, with what it holds.
func side(funcs interceptor.Funcs, objects ...client.Object) client.Client {
	s := scheme.New()
	return fake.NewClientBuilder().WithScheme(s).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(s)).
		WithObjects(objects...).WithInterceptorFuncs(funcs).WithReturnManagedFields().Build()
}

func options(hub, member client.Client) promotion.Options {
	return promotion.Options{
		Cluster: "east", Hub: hub, Member: member, Interpreter: interpreter.Native(),
		Dependencies: true, Unrehearsed: true, Now: time.Unix(0, 0),
	}
}

// held lists what the hub holds of a promotion.
func contents(t *testing.T, hub client.Client) []string {
	t.Helper()
	out := []string{}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &policyv1alpha1.PropagationPolicyList{}} {
		if err := hub.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch l := list.(type) {
		case *appsv1.DeploymentList:
			for _, d := range l.Items {
				out = append(out, "Deployment "+d.Name+" "+d.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation])
			}
		case *corev1.ConfigMapList:
			for _, c := range l.Items {
				out = append(out, "ConfigMap "+c.Name+" "+c.Annotations[workv1alpha2.ResourceConflictResolutionAnnotation])
			}
		case *policyv1alpha1.PropagationPolicyList:
			for _, p := range l.Items {
				out = append(out, "PropagationPolicy "+p.Name)
			}
		}
	}
	return out
}

func TestCarry(t *testing.T) {
	full := errors.New("the disk is full")
	stuck := errors.New("it is stuck")
	cases := map[string]struct {
		failCreate, failDelete string // kinds
		meanwhile              string // who makes it first; empty: the disk is full
		says                   string
		held                   []string
	}{
		"all is made": {
			held: []string{"Deployment web overwrite", "ConfigMap settings overwrite", "PropagationPolicy web-7fd7ff5bf5"},
		},
		"the object is not taken: nothing is left": {
			failCreate: "Deployment", says: "make Deployment shop/web: the disk is full", held: []string{},
		},
		"somebody else makes another one meanwhile: nothing of ours is left": {
			failCreate: "Deployment", meanwhile: "kubectl",
			says: "somebody else made Deployment shop/web in the control plane meanwhile: run the same again, it goes on from what is there by then",
			held: []string{"Deployment web "},
		},
		"somebody else promotes it meanwhile: what that goes by stays": {
			failCreate: "Deployment", meanwhile: "flotilla-promote",
			says: "somebody else made Deployment shop/web in the control plane meanwhile: run the same again, it goes on from what is there by then",
			held: []string{"Deployment web ", "ConfigMap settings overwrite", "PropagationPolicy web-7fd7ff5bf5"},
		},
		"what it needs is not taken: nothing is left": {
			failCreate: "ConfigMap", says: "make ConfigMap shop/settings: the disk is full", held: []string{},
		},
		"what was made cannot be removed: it is named": {
			failCreate: "Deployment", failDelete: "PropagationPolicy",
			says: "make Deployment shop/web: the disk is full\nPropagationPolicy shop/web-7fd7ff5bf5 stays in the control plane, remove it: it is stuck",
			held: []string{"PropagationPolicy web-7fd7ff5bf5"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kindOf := func(c client.Client, obj client.Object) string {
				gvk, err := c.GroupVersionKindFor(obj)
				if err != nil {
					t.Error(err)
				}
				return gvk.Kind
			}
			var first string
			hub := side(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
					kind := kindOf(c, obj)
					if first == "" {
						first = kind
					}
					if kind == tc.failCreate {
						if tc.meanwhile == "" {
							return full
						}
						if err := c.Create(ctx, deployment(nil), client.FieldOwner(tc.meanwhile)); err != nil {
							return err
						}
						return apierrors.NewAlreadyExists(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web")
					}
					return c.Create(ctx, obj, opts...)
				},
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					if kindOf(c, obj) == tc.failDelete {
						return stuck
					}
					return c.Delete(ctx, obj, opts...)
				},
			}, namespace(), cluster())
			p, err := promotion.Plan(t.Context(), web, options(hub, side(interceptor.Funcs{}, namespace(), deployment(nil), settings("blue"))))
			if err != nil {
				t.Fatal(err)
			}
			if got := messageOf(p.Carry(t.Context())); got != tc.says {
				t.Errorf("error %q, want %q", got, tc.says)
			}
			if first != "PropagationPolicy" {
				t.Errorf("%s was made first: another policy could take it", first)
			}
			if diff := cmp.Diff(tc.held, contents(t, hub)); diff != "" {
				t.Errorf("the hub holds (-want +got):\n%s", diff)
			}
		})
	}
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPlan(t *testing.T) {
	labelled := func(key, value string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.Labels = map[string]string{key: value} }
	}
	kept := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7fd7ff5bf5"}}
	leaving := cluster()
	leaving.DeletionTimestamp, leaving.Finalizers = ptr.To(metav1.Unix(1, 0)), []string{"a/b"}
	cases := map[string]struct {
		live *appsv1.Deployment
		hub  []client.Object
		says string // empty: it is promoted
		note string
		is   []string // what is promoted; with + where the hub has it not yet
	}{
		"the object and what it needs": {is: []string{"+Deployment shop/web", "+ConfigMap shop/settings"}},
		"what the hub holds in the same form is used": {
			hub: []client.Object{settings("blue")}, is: []string{"+Deployment shop/web", "ConfigMap shop/settings"},
		},
		"what the hub holds in another form is refused, without its contents": {
			hub:  []client.Object{settings("secret-color")},
			says: "the control plane holds another ConfigMap shop/settings than cluster east (/data/color): make them the same, or delete that of the control plane; without --dependencies it stays the cluster's own",
		},
		"another spec on the hub": {
			hub:  []client.Object{deployment(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) })},
			says: "the control plane holds another Deployment shop/web than cluster east (/spec/replicas): make them the same, or delete that of the control plane",
		},
		"managed by a fleet": {
			live: deployment(labelled(workv1alpha2.ManagedByKarmadaLabel, "true")),
			says: "Deployment shop/web in cluster east is managed by a fleet already (Work ): flotilla explain says by what",
		},
		"a policy of the name that says something else": {
			hub:  []client.Object{kept},
			says: "PropagationPolicy shop/web-7fd7ff5bf5 is there already and says something else: --policy-name names another",
		},
		"a cluster that leaves": {
			hub: []client.Object{leaving}, says: "cluster east is leaving the fleet: nothing can be promoted from it",
		},
		"what is not there is told": {
			live: deployment(func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name = "gone"
			}),
			note: "ConfigMap shop/gone in cluster east is not there: nothing goes along", is: []string{"+Deployment shop/web"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := tc.live
			if live == nil {
				live = deployment(nil)
			}
			objects := append([]client.Object{namespace()}, tc.hub...)
			if name != "a cluster that leaves" {
				objects = append(objects, cluster())
			}
			p, err := promotion.Plan(t.Context(), web, options(side(interceptor.Funcs{}, objects...), side(interceptor.Funcs{}, namespace(), live, settings("blue"))))
			if got := messageOf(err); got != tc.says {
				t.Fatalf("error %q, want %q", got, tc.says)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(tc.is, items(p)); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
			if got := strings.Join(p.Notes, "\n"); got != tc.note {
				t.Errorf("notes %q, want %q", got, tc.note)
			}
		})
	}
}

// promoter is in the managed fields of what a promotion made.
func promoter(apiVersion string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: "flotilla-promote", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiVersion, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")}}}
}

// TestUndo: what would remove or leave behind more than was promoted is refused.
func TestUndo(t *testing.T) {
	policy := func(change func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.PropagationPolicy {
		p := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7fd7ff5bf5", ManagedFields: promoter("policy.karmada.io/v1alpha1")}}
		p.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "own"}
		p.Spec = policyv1alpha1.PropagationSpec{
			ResourceSelectors:           []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}},
			PreserveResourcesOnDeletion: ptr.To(true),
			Placement:                   policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}},
		}
		if change != nil {
			change(&p.Spec)
		}
		return p
	}
	binding := func(spec workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBinding {
		return &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}, Spec: spec}
	}
	carried := func(by string) *appsv1.Deployment {
		return deployment(func(d *appsv1.Deployment) {
			d.ManagedFields = promoter("apps/v1")
			d.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: by}
			d.Annotations = map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop", policyv1alpha1.PropagationPolicyNameAnnotation: by}
		})
	}
	protected := carried("own")
	protected.Labels[workv1alpha2.DeletionProtectionLabelKey] = workv1alpha2.DeletionProtectionAlways
	gitted := carried("own")
	before, foreign := policy(nil), carried("own")
	before.ManagedFields, foreign.ManagedFields = nil, nil
	gitted.Labels["kustomize.toolkit.fluxcd.io/name"], gitted.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "apps", "flux"
	cases := map[string]struct {
		hub    []client.Object
		within time.Duration
		says   string
	}{
		"no policy": {says: "there is no PropagationPolicy shop/web-7fd7ff5bf5, by which Deployment shop/web would have been promoted: --policy-name names another"},
		"a policy that removes what it carried": {
			hub:  []client.Object{policy(func(s *policyv1alpha1.PropagationSpec) { s.PreserveResourcesOnDeletion = nil })},
			says: "PropagationPolicy shop/web-7fd7ff5bf5 has no preserveResourcesOnDeletion: what runs in cluster east would be removed; set it first",
		},
		"a policy about more clusters": {
			hub: []client.Object{policy(func(s *policyv1alpha1.PropagationSpec) {
				s.Placement.ClusterAffinity.ClusterNames = []string{"east", "west"}
			})},
			says: "PropagationPolicy shop/web-7fd7ff5bf5 is about more than cluster east, where copies would be left behind: leave only that cluster in its clusterNames first",
		},
		"a policy about another cluster": {
			hub:  []client.Object{policy(func(s *policyv1alpha1.PropagationSpec) { s.Placement.ClusterAffinity.ClusterNames = []string{"west"} })},
			says: "PropagationPolicy shop/web-7fd7ff5bf5 is about cluster west, and not east: name that with --cluster",
		},
		"a policy about everything of a kind": {
			hub:  []client.Object{policy(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "" })},
			says: "PropagationPolicy shop/web-7fd7ff5bf5 selects more than was promoted: leave only selectors with a name in it first",
		},
		"a policy about something else": {
			hub:  []client.Object{policy(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Name = "api" })},
			says: "PropagationPolicy shop/web-7fd7ff5bf5 does not select Deployment shop/web: --policy-name names another",
		},
		"another policy took it": {
			hub:  []client.Object{policy(nil), carried("other")},
			says: "Deployment shop/web is carried by the policy shop/other now: take it out of PropagationPolicy shop/web-7fd7ff5bf5 first",
		},
		"nothing of it was made by a promotion": {
			hub:  []client.Object{before, foreign},
			says: "Deployment shop/web and PropagationPolicy shop/web-7fd7ff5bf5 were in the control plane before it was promoted: take it out of the policy to have it carried no longer",
		},
		"it is protected": {
			hub:  []client.Object{policy(nil), protected},
			says: "Deployment shop/web is protected from deletion: take the label resourcetemplate.karmada.io/deletion-protected off first",
		},
		"Git keeps it": {
			hub:  []client.Object{policy(nil), gitted},
			says: "Deployment shop/web is kept by Kustomization flux/apps: take it out of Git first",
		},
		"it has not left another cluster yet": {
			hub:  []client.Object{policy(nil), carried("own"), binding(workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "west"}}})},
			says: "Deployment shop/web still runs in cluster west: try again once it has left",
		},
		"something else needs it": {
			hub: []client.Object{policy(nil), carried("own"), binding(workv1alpha2.ResourceBindingSpec{
				RequiredBy: []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "api-deployment"}},
			})},
			says: "Deployment shop/web goes along with what the binding shop/api-deployment is of: give that back first",
		},
		"the loops do not know yet that it is to stay": {
			hub:    []client.Object{policy(nil), carried("own"), binding(workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}})},
			within: time.Millisecond,
			says:   "Deployment shop/web in cluster east is not known yet to be preserved: nothing was given back, try again",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := side(interceptor.Funcs{
				Delete: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.DeleteOption) error {
					t.Errorf("%s was deleted", obj.GetName())
					return nil
				},
			}, append(tc.hub, cluster(), namespace())...)
			_, err := promotion.Undo(t.Context(), web, promotion.UndoOptions{Cluster: "east", Hub: hub, Member: side(interceptor.Funcs{}), Within: tc.within})
			if got := messageOf(err); got != tc.says {
				t.Errorf("error %q, want %q", got, tc.says)
			}
		})
	}
}

// TestUndoGoesOn: what was interrupted after the template had gone is finished.
func TestUndoGoesOn(t *testing.T) {
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7fd7ff5bf5", UID: "1", ManagedFields: promoter("policy.karmada.io/v1alpha1")}}
	policy.Spec = policyv1alpha1.PropagationSpec{
		ResourceSelectors:           []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}},
		PreserveResourcesOnDeletion: ptr.To(true),
		Placement:                   policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}},
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: workv1alpha2.ExecutionNamespace("east"), Name: workv1alpha2.WorkName("Deployment", "web", "shop"),
	}}
	labelled := deployment(func(d *appsv1.Deployment) { d.Labels = map[string]string{workv1alpha2.ManagedByKarmadaLabel: "true"} })
	cases := map[string]struct {
		hub  []client.Object
		live *appsv1.Deployment
		says string
		held []string
	}{
		"all has gone":                  {live: deployment(nil), held: []string{}},
		"the cluster has not let it go": {hub: []client.Object{work}, live: labelled, held: []string{"PropagationPolicy web-7fd7ff5bf5"}, says: late},
		"the mark is still there":       {live: labelled, held: []string{"PropagationPolicy web-7fd7ff5bf5"}, says: late},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := side(interceptor.Funcs{}, append(tc.hub, policy.DeepCopy())...)
			returned, err := promotion.Undo(t.Context(), web, promotion.UndoOptions{
				Cluster: "east", Hub: hub, Member: side(interceptor.Funcs{}, tc.live), Within: time.Millisecond,
			})
			if got := messageOf(err); got != tc.says {
				t.Errorf("error %q, want %q", got, tc.says)
			}
			if err == nil && (returned.Policy != "PropagationPolicy shop/web-7fd7ff5bf5" || !cmp.Equal(returned.Objects, []promotion.Object{web})) {
				t.Errorf("gave back %+v", returned)
			}
			if diff := cmp.Diff(tc.held, contents(t, hub)); diff != "" {
				t.Errorf("the hub holds (-want +got):\n%s", diff)
			}
		})
	}
}

const late = "Deployment shop/web in cluster east still bears our labels; PropagationPolicy shop/web-7fd7ff5bf5 stays until it does not. Is the cluster ready? Then try again"
