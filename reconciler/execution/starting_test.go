package execution_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// testNotStarting: the Work says why an image is not there, as the Pods in the member do, and no longer once it is.
func testNotStarting(t *testing.T, f *fleet) {
	stuck := web("fake/nginx:1")
	stuck.Name = "stuck"
	stuck.Spec.Selector.MatchLabels["app"] = "stuck"
	b := f.template(t, stuck, 2)
	eventually(t, "the work says why", func(ctx context.Context) error {
		work, err := f.work(ctx, b)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkPodsReady); c == nil || c.Reason != "ErrImagePull" {
			return fmt.Errorf("conditions: %v", work.Status.Conditions)
		}
		return nil
	})
	f.idle(t)
	stuck.Spec.Template.Spec.Containers[0].Image = "nginx:1"
	f.carry(t, b, stuck)
	if c := meta.FindStatusCondition(f.applied(t, b).Status.Conditions, workv1alpha1.WorkPodsReady); c != nil {
		t.Errorf("although it runs: %v", c)
	}
}
