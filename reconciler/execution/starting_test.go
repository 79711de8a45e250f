package execution_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// testNotStarting: the Work says why an image is not there, as the Pods in the member do, and no longer once it is.
func testNotStarting(t *testing.T, f *fleet) {
	stuck := web("fake/nginx:1")
	stuck.Name = "stuck"
	stuck.Spec.Selector.MatchLabels["app"] = "stuck"
	b := f.template(t, stuck, 2)
	f.whyNotReady(t, b, "ErrImagePull")
	f.idle(t)
	stuck.Spec.Template.Spec.Containers[0].Image = "nginx:1"
	f.carry(t, b, stuck)
	f.applied(t, b)
	f.whyNotReady(t, b, "") // what is left of the version before may have been looked at
}

// whyNotReady waits until the Work of a binding says why its Pods are not ready; empty for nothing.
func (f *fleet) whyNotReady(t *testing.T, b *workv1alpha2.ResourceBinding, why string) {
	t.Helper()
	eventually(t, "the work says "+why, func(ctx context.Context) error {
		work, err := f.work(ctx, b)
		if err != nil {
			return err
		}
		says := ""
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkPodsReady); c != nil {
			says = c.Reason
		}
		if says != why {
			return fmt.Errorf("conditions: %v", work.Status.Conditions)
		}
		return nil
	})
}

// testNotMade: the status of a StatefulSet does not say that a quota refuses its Pods; a Warning in the member does.
func testNotMade(t *testing.T, f *fleet) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	if err := f.edge.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota counts", func(ctx context.Context) error {
		if err := f.edge.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return fmt.Errorf("status: %v", quota.Status)
		}
		return nil
	})
	pods := web("nginx:1").Spec
	pods.Selector.MatchLabels["app"] = "refused"
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "refused"}, Spec: appsv1.StatefulSetSpec{Replicas: pods.Replicas, Selector: pods.Selector, Template: pods.Template}}
	b := f.template(t, set, 2)
	f.whyNotReady(t, b, "FailedCreate")
	if err := f.edge.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	f.applied(t, b)
	f.whyNotReady(t, b, "")
}
