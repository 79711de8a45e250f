package promotion_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/change/promotion"
)

// TestUndoRemovesWhatWasMade: and leaves what was on the hub before.
func TestUndoRemovesWhatWasMade(t *testing.T) {
	planned, err := promotion.Plan(t.Context(), web, options(side(interceptor.Funcs{}, namespace(), cluster()), side(interceptor.Funcs{}, namespace(), deployment(nil), settings("blue"))))
	if err != nil {
		t.Fatal(err)
	}
	same := planned.Policy.(client.Object)
	for name, tc := range map[string]struct {
		before []client.Object
		want   []string
		kept   []string
		policy bool
	}{
		"nothing was there": {want: []string{}},
		"what it needs was there": {
			before: []client.Object{settings("blue")},
			want:   []string{"ConfigMap settings "}, kept: []string{"ConfigMap shop/settings"},
		},
		"the policy was there": {
			before: []client.Object{same},
			want:   []string{"PropagationPolicy web-7fd7ff5bf5"}, policy: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := side(interceptor.Funcs{}, append(tc.before, namespace(), cluster())...)
			member := side(interceptor.Funcs{}, namespace(), deployment(nil), settings("blue"))
			p, err := promotion.Plan(t.Context(), web, options(hub, member))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Carry(t.Context()); err != nil {
				t.Fatal(err)
			}
			returned, err := promotion.Undo(t.Context(), web, promotion.UndoOptions{Cluster: "east", Hub: hub, Member: member})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, contents(t, hub)); diff != "" {
				t.Errorf("the hub holds (-want +got):\n%s", diff)
			}
			var kept []string
			for _, of := range returned.Kept {
				kept = append(kept, of.String())
			}
			if len(returned.Objects) != 2 || !slices.Equal(kept, tc.kept) || returned.PolicyKept != tc.policy {
				t.Errorf("it says %+v", returned)
			}
		})
	}
}

var errCut = errors.New("cut off")

// carriedPair is a hub that carries a Deployment that was promoted, and a ConfigMap
// that it had before, to a member, with loops that do what is to be done after each
// write. Its clients fail from the n-th write on.
func carriedPair(writes, from *int) (hub, member client.Client) {
	ours := func(obj client.Object, apiVersion string) client.Object {
		obj.SetUID(types.UID("in-" + obj.GetName()))
		obj.SetLabels(map[string]string{workv1alpha2.ManagedByKarmadaLabel: "true"})
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "flotilla", Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:annotations":{}}}`)}},
			{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiVersion, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{}}`)}},
		})
		return obj
	}
	claimed := func(obj client.Object, by []metav1.ManagedFieldsEntry) client.Object {
		obj.SetUID(types.UID("of-" + obj.GetName()))
		obj.SetManagedFields(by)
		obj.SetLabels(map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "own"})
		obj.SetAnnotations(map[string]string{policyv1alpha1.PropagationPolicyNamespaceAnnotation: "shop", policyv1alpha1.PropagationPolicyNameAnnotation: "web-7fd7ff5bf5"})
		return obj
	}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-7fd7ff5bf5", UID: "1", ManagedFields: promoter("policy.karmada.io/v1alpha1")}}
	policy.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "own"}
	policy.Spec = policyv1alpha1.PropagationSpec{
		PreserveResourcesOnDeletion: ptr.To(true),
		Placement:                   policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}},
	}
	objects := []client.Object{policy, claimed(deployment(nil), promoter("apps/v1")), claimed(settings("blue"), nil)}
	for _, of := range []workv1alpha2.ObjectReference{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, {APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}} {
		policy.Spec.ResourceSelectors = append(policy.Spec.ResourceSelectors, policyv1alpha1.ResourceSelector{APIVersion: of.APIVersion, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name})
		binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName(of.Kind, of.Name)}}
		binding.Spec = workv1alpha2.ResourceBindingSpec{Resource: of, PreserveResourcesOnDeletion: ptr.To(true), Clusters: []workv1alpha2.TargetCluster{{Name: "east"}}}
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: workv1alpha2.WorkName(of.Kind, of.Name, of.Namespace)}}
		work.Spec.PreserveResourcesOnDeletion = ptr.To(true)
		objects = append(objects, claimed(binding, nil), work)
	}
	fails := func() error {
		if *writes++; *writes >= *from {
			return errCut
		}
		return nil
	}
	member = side(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := fails(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}, ours(deployment(nil), "apps/v1"), ours(settings("blue"), "v1"))
	hub = side(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := fails(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := fails(); err != nil {
				return err
			}
			if err := c.Delete(ctx, obj, opts...); err != nil {
				return err
			}
			return loops(ctx, c, member)
		},
	}, objects...)
	return hub, member
}

// loops does what the loops of the hub and of the member would do.
func loops(ctx context.Context, hub, member client.Client) error {
	policies := &policyv1alpha1.PropagationPolicyList{}
	if err := hub.List(ctx, policies); err != nil {
		return err
	}
	for kind, of := range map[string][2]client.Object{
		"Deployment": {deployment(nil), deployment(nil)}, "ConfigMap": {settings(""), settings("")},
	} {
		template, live := of[0], of[1]
		key := client.ObjectKeyFromObject(template)
		binding := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: workv1alpha2.BindingName(kind, key.Name)}}
		gone := hub.Get(ctx, key, template)
		unbound := hub.Get(ctx, client.ObjectKeyFromObject(binding), binding)
		switch {
		case gone != nil && unbound == nil:
			if unbound = hub.Delete(ctx, binding); unbound != nil {
				return unbound
			}
			return loops(ctx, hub, member)
		case gone == nil && len(policies.Items) == 0:
			for _, obj := range []client.Object{template, binding} {
				obj.SetLabels(nil)
				annotations := obj.GetAnnotations()
				delete(annotations, policyv1alpha1.PropagationPolicyNamespaceAnnotation)
				delete(annotations, policyv1alpha1.PropagationPolicyNameAnnotation)
				obj.SetAnnotations(annotations)
				if err := hub.Update(ctx, obj); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
		work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: workv1alpha2.ExecutionNamespace("east"), Name: workv1alpha2.WorkName(kind, key.Name, "shop")}}
		if unbound == nil || hub.Delete(ctx, work) != nil {
			continue
		}
		if err := member.Get(ctx, key, live); err != nil {
			return err
		}
		live.SetLabels(nil)
		if err := member.Update(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// TestAnUndoThatIsCutOffAnywhereIsFinishedByTheNext, with a template that stays.
func TestAnUndoThatIsCutOffAnywhereIsFinishedByTheNext(t *testing.T) {
	for step := 1; ; step++ {
		writes, from := 0, step
		hub, member := carriedPair(&writes, &from)
		o := promotion.UndoOptions{Cluster: "east", Hub: hub, Member: member, Within: timeout}
		returned, err := promotion.Undo(t.Context(), web, o)
		if err != nil && !errors.Is(err, errCut) {
			t.Fatalf("step %d: %v", step, err)
		}
		reported := err == nil && len(returned.Notes) > 0 // the very last write, which nothing depends on
		done := err == nil && !reported
		if from = 1 << 20; err != nil {
			if _, err := promotion.Undo(t.Context(), web, o); err != nil {
				t.Fatalf("after it was cut off at step %d: %v", step, err)
			}
		}
		if diff := cmp.Diff([]string{"ConfigMap settings "}, contents(t, hub)); diff != "" {
			t.Errorf("after it was cut off at step %d the hub holds (-want +got):\n%s", step, diff)
		}
		bindings, works := &workv1alpha2.ResourceBindingList{}, &workv1alpha1.WorkList{}
		if err := errors.Join(hub.List(t.Context(), bindings), hub.List(t.Context(), works)); err != nil || len(bindings.Items)+len(works.Items) > 0 {
			t.Errorf("after it was cut off at step %d: %d bindings, %d Works, %v", step, len(bindings.Items), len(works.Items), err)
		}
		for _, obj := range []client.Object{deployment(nil), settings("")} {
			if err := member.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
				t.Fatal(err)
			}
			var managers []string
			for _, e := range obj.GetManagedFields() {
				managers = append(managers, e.Manager)
			}
			want := []string{"helm"}
			if reported && obj.GetName() == "settings" {
				want = []string{"flotilla", "helm"}
			}
			if len(obj.GetLabels()) > 0 || !slices.Equal(managers, want) {
				t.Errorf("after it was cut off at step %d the member's %s has %v, and is managed by %q", step, obj.GetName(), obj.GetLabels(), managers)
			}
		}
		if done {
			if step < 6 {
				t.Errorf("only %d writes", step)
			}
			return
		}
	}
}

// TestWhoMayNotWriteInTheMemberSeesWhatIsLeft: the object is given back all the
// same.
func TestWhoMayNotWriteInTheMemberSeesWhatIsLeft(t *testing.T) {
	writes, from := 0, 1<<20
	hub, member := carriedPair(&writes, &from)
	forbidden := interceptor.NewClient(member.(client.WithWatch), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return apierrors.NewForbidden(corev1.Resource("configmaps"), "settings", errors.New("no"))
		},
	})
	returned, err := promotion.Undo(t.Context(), web, promotion.UndoOptions{Cluster: "east", Hub: hub, Member: forbidden, Within: timeout})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Deployment shop/web in cluster east bears the fleet in its managedFields still (configmaps \"settings\" is forbidden: no): who applies it with --server-side needs --force-conflicts once",
		"ConfigMap shop/settings in cluster east bears the fleet in its managedFields still (configmaps \"settings\" is forbidden: no): who applies it with --server-side needs --force-conflicts once",
	}
	if diff := cmp.Diff(want, returned.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// timeout is more than the loops of the tests ever take.
const timeout = time.Minute
