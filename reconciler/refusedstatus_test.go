package reconciler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// TestStatusesThatAreRefused has the hub take no status of what is carried: members get what is made, changed and deleted
// all the same, and once statuses are taken again they say how things are.
func TestStatusesThatAreRefused(t *testing.T) {
	m := withoutLoops(t)
	kind := schema.GroupResource{Group: workv1alpha1.GroupVersion.Group, Resource: "works"}
	for name, refusal := range map[string]error{
		"nobody may write them":       apierrors.NewForbidden(kind, "", nil),
		"somebody else writes them":   apierrors.NewConflict(kind, "", nil),
		"the hub does not get to it":  apierrors.NewTimeoutError("the request takes too long", 1),
		"the hub does not answer it":  context.DeadlineExceeded,
		"the hub says that it is bad": apierrors.NewInternalError(fmt.Errorf("no space left on device")),
	} {
		t.Run(name, func(t *testing.T) {
			m := m.in(t)
			ns := m.hub.Namespace(t)
			statuses := &statuses{refusal: refusal}
			stop := m.hub.StartLoops(t, statuses.register)
			defer func() { m.check(stop()) }()

			statuses.refused.Store(true)
			m.start(ns, nil, from, to)
			settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}
			m.check(m.hub.Hub.Patch(t.Context(), settings, client.RawPatch(types.MergePatchType, []byte(`{"data":{"colour":"blue"}}`))))
			for cluster, edge := range m.edges {
				m.eventually("the change is in "+cluster, func() error {
					got := &corev1.ConfigMap{}
					if err := edge.Get(t.Context(), client.ObjectKeyFromObject(settings), got); err != nil || got.Data["colour"] != "blue" {
						return fmt.Errorf("data %v: %w", got.Data, err)
					}
					return nil
				})
			}
			if statuses.asked.Load() == 0 {
				t.Error("no status was refused")
			}

			statuses.refused.Store(false)
			m.eventually("the statuses say that both have it", func() error {
				b, err := m.binding(ns)
				if err == nil && (len(b.Status.AggregatedStatus) != 2 || !meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied)) {
					err = fmt.Errorf("status %+v", b.Status)
				}
				return err
			})

			statuses.refused.Store(true)
			m.check(m.hub.Hub.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}))
			for cluster := range m.edges {
				m.eventually("it has left "+cluster, func() error {
					if m.has(cluster, ns) {
						return errStays
					}
					return nil
				})
			}
		})
	}
}

// statuses are those that a hub may refuse, of Works and bindings.
type statuses struct {
	refusal error
	refused atomic.Bool
	asked   atomic.Int64 // how many were refused
}

func (s *statuses) register(ctx context.Context, mgr ctrl.Manager) error {
	mgr, err := intercepted(mgr, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			switch obj.(type) {
			case workv1alpha2.Binding, *workv1alpha1.Work:
				if s.refused.Load() {
					s.asked.Add(1)
					return s.refusal
				}
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	if err != nil {
		return err
	}
	return registerMoves(ctx, mgr)
}
