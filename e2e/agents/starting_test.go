package agents

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// TestAnAgentSaysWhyNothingStarts: as the control plane does of clusters that it reaches itself.
func TestAnAgentSaysWhyNothingStarts(t *testing.T) {
	t.Parallel() // it waits for most of its time
	namespace := fleet.NameOf(t)
	s := the.site(t, fleet.Again(t, "stuck"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	the.Apply(t, strings.Replace(fleet.App(namespace, 1, s.name), "nginx:1.29", "fake/nginx:1.29", 1))
	key := client.ObjectKey{Namespace: workv1alpha2.ExecutionNamespace(s.name), Name: workv1alpha2.WorkName("Deployment", "web", namespace)}
	eventually(t, 2*time.Minute, "the Work says why", func(ctx context.Context) error {
		work := &workv1alpha1.Work{}
		if err := the.hub.Get(ctx, key, work); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.WorkPodsReady); c == nil || c.Reason != "ErrImagePull" {
			return fmt.Errorf("conditions: %v", work.Status.Conditions)
		}
		return nil
	})
}
