package execution

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

// TestAWorkSaysWhyItsPodsDoNotStart: once its workload has not been ready for a while, and until it is.
func TestAWorkSaysWhyItsPodsDoNotStart(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-6f7d8-x", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-6f7d8"}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image: a:1"}}}}
	e := &edge{presence: members.Present, pods: []corev1.Pod{pod}}
	w := testWorker(e, clock)
	work := testWork(strings.Replace(manifestText, `"replicas":5`, `"replicas":5,"selector":{"matchLabels":{"app":"web"}},"template":{}`, 1))
	for _, step := range []struct {
		what   string
		health workv1alpha1.ResourceHealth
		after  time.Duration
		asked  []string
		says   string
		again  time.Duration
	}{
		{what: "it was sent", health: workv1alpha1.ResourceHealthy, asked: []string{"apply web"}},
		{what: "it does not become ready", health: workv1alpha1.ResourceUnhealthy, again: 30 * time.Second},
		{what: "nor later", health: workv1alpha1.ResourceUnhealthy, after: 30 * time.Second, asked: []string{"pods app=web"}, says: "ErrImagePull: no such image: a:1", again: 30 * time.Second},
		{what: "it is ready", health: workv1alpha1.ResourceHealthy, after: 10 * time.Second},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		e.observed, e.asked = ours(func(o *members.Observed) {
			o.Health, o.Status = step.health, &runtime.RawExtension{Raw: []byte(`{"replicas":5,"updatedReplicas":5}`)}
		}), nil
		s := &state{key: workKey, work: work, member: e}
		next, err := loopOf(t, w, s)
		if err != nil {
			t.Fatal(err)
		}
		says := ""
		if c := meta.FindStatusCondition(s.status.Conditions, workv1alpha1.WorkPodsReady); c != nil {
			says = c.Message
		}
		if diff := cmp.Diff([]any{step.asked, step.says, step.again}, []any{e.asked, says, next.After}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
		work = work.DeepCopy()
		work.Status = *s.status
	}
	if !slices.Contains(w.memories, memory(w.describer.symptoms)) {
		t.Error("nothing forgets what is kept of a Work that is gone")
	}
}
