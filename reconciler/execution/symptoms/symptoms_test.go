package symptoms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/members"
)

// ward is a member with Pods, which notes what it is asked.
type ward struct {
	pods     []corev1.Pod
	silence  error
	asked    []string
	warnings []corev1.Event
	about    []types.UID
}

func (w *ward) Warnings(_ context.Context, _ string, about types.UID) ([]corev1.Event, error) {
	w.about = append(w.about, about)
	return w.warnings, w.silence
}

func (w *ward) Pods(_ context.Context, namespace string, o metav1.ListOptions) ([]corev1.Pod, error) {
	w.asked = append(w.asked, strings.TrimSpace(fmt.Sprintf("%d in %s: %s %s", o.Limit, namespace, o.LabelSelector, o.FieldSelector)))
	return w.pods, w.silence
}

// waiting is a Pod of the Deployment web whose container waits.
func waiting(reason, message string) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-6f7d8-x", OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-6f7d8"}}}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	return p
}

func work(generation int64) *workv1alpha1.Work {
	return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "web", UID: "w", Generation: generation}}
}

const healthy, unhealthy, unknown = workv1alpha1.ResourceHealthy, workv1alpha1.ResourceUnhealthy, workv1alpha1.ResourceUnknown

// deployment is what is known of web.
func deployment(health workv1alpha1.ResourceHealth, annotations ...string) Object {
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}, "template": map[string]any{}},
	}}
	if len(annotations) > 0 {
		manifest.SetAnnotations(map[string]string{annotations[0]: "fields"})
	}
	return Object{
		Kind:     schema.GroupKind{Group: "apps", Kind: "Deployment"},
		Manifest: func() (*unstructured.Unstructured, error) { return manifest, nil },
		Observed: &members.Observed{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"}, Health: health, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1,"updatedReplicas":1}`)}},
		Known:    true,
	}
}

// TestWhenItAsks walks through the life of a workload that does not start, with what the Work says of it.
func TestWhenItAsks(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	all, member := New(clock, 0), &ward{pods: []corev1.Pod{waiting("ErrImagePull", "no such image: a:1")}}
	status := &workv1alpha1.WorkStatus{}
	other := deployment(unhealthy)
	other.Observed.UID = "other"
	const ask = "100 in shop: app=web"
	const pull = "1: ErrImagePull: ErrImagePull: no such image: a:1"
	for _, step := range []struct {
		what   string
		after  time.Duration
		change func()
		work   *workv1alpha1.Work
		object Object
		asked  []string
		says   string
		again  time.Duration
	}{
		{what: "it is healthy", object: deployment(healthy)},
		{what: "it is not ready", object: deployment(unhealthy), again: 30 * time.Second},
		{what: "a report meanwhile costs nothing", after: 10 * time.Second, object: deployment(unhealthy), again: 20 * time.Second},
		{what: "it was ready for a moment", after: 10 * time.Second, object: deployment(healthy)},
		{what: "it begins anew", after: 15 * time.Second, object: deployment(unhealthy), again: 30 * time.Second},
		{what: "it stays so", after: 30 * time.Second, object: deployment(unhealthy), asked: []string{ask}, says: pull, again: 30 * time.Second},
		{what: "each further report costs nothing", after: time.Second, object: deployment(unhealthy), says: pull, again: 29 * time.Second},
		{what: "the kubelet waits before it tries again", after: 29 * time.Second, change: func() { member.pods = []corev1.Pod{waiting("ImagePullBackOff", "Back-off pulling image a:1")} },
			object: deployment(unhealthy), asked: []string{ask}, says: pull, again: time.Minute},
		{what: "the member does not answer", after: time.Minute, change: func() { member.silence = errors.New("no answer") }, object: deployment(unhealthy), asked: []string{ask}, says: pull, again: 2 * time.Minute},
		{what: "something else is wrong", after: 2 * time.Minute, change: func() {
			member.silence, member.pods = nil, []corev1.Pod{waiting("CreateContainerConfigError", `secret "db" not found`)}
		}, object: deployment(unhealthy), asked: []string{ask}, says: `1: CreateContainerConfigError: CreateContainerConfigError: secret "db" not found`, again: 4 * time.Minute},
		{what: "it is not known how it is", after: time.Minute, object: deployment(unknown), says: `1: CreateContainerConfigError: CreateContainerConfigError: secret "db" not found`},
		{what: "it starts", after: 4 * time.Minute, change: func() { member.pods = nil }, object: deployment(unhealthy), asked: []string{ask}, again: 8 * time.Minute},
		{what: "it does not in the end", after: 8 * time.Minute, change: func() { member.pods = []corev1.Pod{waiting("ErrImagePull", "no such image: a:1")} }, object: deployment(unhealthy), asked: []string{ask}, says: pull, again: 10 * time.Minute},
		{what: "no pause is longer", after: 10 * time.Minute, object: deployment(unhealthy), asked: []string{ask}, says: pull, again: 10 * time.Minute},
		{what: "the next version is another thing", work: work(2), object: deployment(unhealthy), again: 30 * time.Second},
		{what: "it does not start, either", after: 30 * time.Second, work: work(2), object: deployment(unhealthy), asked: []string{ask}, says: "2" + pull[1:], again: 30 * time.Second},
		{what: "somebody removed it, and it is made anew", after: time.Second, work: work(2), object: other, says: "2" + pull[1:], again: 30 * time.Second},
		{what: "the new one is healthy in the end", after: time.Second, work: work(2), object: deployment(healthy)},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		if step.change != nil {
			step.change()
		}
		if step.work == nil {
			step.work = work(1)
		}
		member.asked = nil
		step.work.Status = *status.DeepCopy()
		again := all.Report(t.Context(), member, step.work, []Object{step.object}, status)
		if diff := cmp.Diff([]any{step.asked, step.says, step.again}, []any{member.asked, podsReady(status), again}); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// said is the condition in a status.
func podsReady(status *workv1alpha1.WorkStatus) string {
	for _, c := range status.Conditions {
		if c.Type == workv1alpha1.WorkPodsReady && c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("%d: %s: %s", c.ObservedGeneration, c.Reason, c.Message)
		}
	}
	return ""
}

// TestARestartChangesNothing: what was said stays, and is looked at again as if it were new.
func TestARestartChangesNothing(t *testing.T) {
	clock, member := clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), &ward{pods: []corev1.Pod{waiting("ErrImagePull", "no such image: a:1")}}
	w := work(1)
	w.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkPodsReady, Status: metav1.ConditionFalse, Reason: "ErrImagePull", Message: "ErrImagePull: no such image: a:1", ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(time.Unix(5, 0))}}
	all := New(clock, 0)
	for _, wait := range []time.Duration{0, 30 * time.Second} {
		clock.SetTime(clock.Now().Add(wait))
		status := w.Status.DeepCopy()
		if again := all.Report(t.Context(), member, w, []Object{deployment(unhealthy)}, status); again != 30*time.Second {
			t.Errorf("again after %s", again)
		}
		if diff := cmp.Diff(&w.Status, status); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if len(member.asked) != 1 {
		t.Errorf("asked: %q", member.asked)
	}
}

// TestWhatItSays: what clusters say of an object with text of a Secret is not quoted, and nothing that a member says makes
// a status that the hub refuses.
func TestWhatItSays(t *testing.T) {
	other := waiting("ErrImagePull", "another one's")
	other.OwnerReferences[0].Name = "api-6f7d8"
	next := waiting("ImageInspectError", "it is damaged")
	next.Labels, next.CreationTimestamp = map[string]string{"pod-template-hash": "next"}, metav1.Unix(5, 0)
	for name, tc := range map[string]struct {
		pods   []corev1.Pod
		object Object
		want   string
	}{
		"why an image cannot be pulled":        {[]corev1.Pod{waiting("ErrImagePull", "no such\nimage: a:1")}, deployment(unhealthy), "1: ErrImagePull: ErrImagePull: no such image: a:1"},
		"nothing of an object with a secret":   {[]corev1.Pod{waiting("ErrImagePull", "no such image: hunter2")}, deployment(unhealthy, gitopsv1alpha1.HoldsSecretsAnnotation), "1: ErrImagePull: ErrImagePull"},
		"nothing of the version before":        {[]corev1.Pod{waiting("ErrImagePull", "no such image: a:1"), next}, deployment(unhealthy), "1: ImageInspectError: ImageInspectError: it is damaged"},
		"nothing of Pods of others":            {[]corev1.Pod{other}, deployment(unhealthy), ""},
		"a reason that no condition may have":  {[]corev1.Pod{waiting("no such thing", "")}, deployment(unhealthy), "1: PodsNotReady: no such thing: container app"},
		"a reason without end":                 {[]corev1.Pod{waiting(strings.Repeat("x", 2000), "")}, deployment(unhealthy), "1: PodsNotReady: " + strings.Repeat("x", 509) + "…"},
		"what a terminal would obey":           {[]corev1.Pod{waiting("ErrImagePull", "\x1b[2J")}, deployment(unhealthy), `1: ErrImagePull: ErrImagePull: [2J`},
		"nothing if it has no Pods at all yet": {nil, deployment(unhealthy), ""},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			all, status := New(clock, 0), &workv1alpha1.WorkStatus{}
			for range 2 {
				all.Report(t.Context(), &ward{pods: tc.pods}, work(1), []Object{tc.object}, status)
				clock.SetTime(clock.Now().Add(30 * time.Second))
			}
			if diff := cmp.Diff(tc.want, podsReady(status)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoPodsAtAll: where a set cannot make its Pods, as a quota refuses them, only Warnings of its controller say so.
func TestNoPodsAtAll(t *testing.T) {
	warning := func(uid types.UID, reason, by, message string, seen int64) corev1.Event {
		return corev1.Event{InvolvedObject: corev1.ObjectReference{UID: uid}, Type: corev1.EventTypeWarning, Reason: reason, Source: corev1.EventSource{Component: by}, Message: message, LastTimestamp: metav1.Unix(seen, 0)}
	}
	const controller = "statefulset-controller"
	quota := warning("u", "FailedCreate", controller, `create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota: shop`, 20)
	own := func(pod corev1.Pod) []corev1.Pod {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", UID: "u"}}
		return []corev1.Pod{pod}
	}
	set, secret := deployment(unhealthy), deployment(unhealthy, gitopsv1alpha1.HoldsSecretsAnnotation)
	for _, o := range []*Object{&set, &secret} {
		manifest, err := o.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		manifest.SetKind("StatefulSet")
		o.Kind = manifest.GroupVersionKind().GroupKind()
	}
	for name, tc := range map[string]struct {
		object   Object
		pods     []corev1.Pod
		warnings []corev1.Event
		asked    int
		want     string
	}{
		"a quota refuses them":                   {object: set, warnings: []corev1.Event{warning("u", "FailedCreate", controller, "before", 10), quota}, asked: 1, want: `1: FailedCreate: FailedCreate: pods "web-0" is forbidden: exceeded quota: shop`},
		"a quota refuses the second":             {object: set, pods: own(waiting("", "")), warnings: []corev1.Event{quota}, asked: 1, want: `1: FailedCreate: FailedCreate: pods "web-0" is forbidden: exceeded quota: shop`},
		"one of an object with a secret":         {object: secret, warnings: []corev1.Event{quota}, asked: 1, want: "1: FailedCreate: FailedCreate"},
		"what somebody else says counts as none": {object: set, warnings: []corev1.Event{warning("u", "FailedCreate", "somebody", "hunter2", 30)}, asked: 1},
		"there are Pods":                         {object: set, pods: own(waiting("ErrImagePull", "no such image: a:1")), want: "1: ErrImagePull: ErrImagePull: no such image: a:1"},
		"a Deployment says it in its status":     {object: deployment(unhealthy)},
	} {
		t.Run(name, func(t *testing.T) {
			clock, member := clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), &ward{pods: tc.pods, warnings: tc.warnings}
			all, status := New(clock, 0), &workv1alpha1.WorkStatus{}
			for range 2 {
				all.Report(t.Context(), member, work(1), []Object{tc.object}, status)
				clock.SetTime(clock.Now().Add(30 * time.Second))
			}
			if diff := cmp.Diff(tc.want, podsReady(status)); diff != "" || len(member.about) != tc.asked {
				t.Errorf("asked about %q (-want +got):\n%s", member.about, diff)
			}
		})
	}
}

// TestWhichObject: of the objects of a Work, the first that waits counts, whatever the others are.
func TestWhichObject(t *testing.T) {
	config := Object{Kind: schema.GroupKind{Kind: "ConfigMap"}, Observed: &members.Observed{Health: healthy}, Known: true}
	service := Object{
		Kind:     schema.GroupKind{Kind: "Service"},
		Observed: &members.Observed{Health: unhealthy}, Known: true,
		Manifest: func() (*unstructured.Unstructured, error) {
			return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service"}}, nil
		},
	}
	broken := service
	broken.Manifest = func() (*unstructured.Unstructured, error) { return nil, errors.New("does not parse") }
	status := runtime.RawExtension{Raw: []byte(`{"replicas":2,"updatedReplicas":1}`)}
	updating := deployment(healthy)
	updating.Observed.Status = &status
	for name, tc := range map[string]struct {
		objects []Object
		asked   int
		again   time.Duration
	}{
		"the second, as the first is well":        {[]Object{config, deployment(unhealthy)}, 1, 30 * time.Second},
		"the second, as the first has no Pods":    {[]Object{service, deployment(unhealthy)}, 1, 30 * time.Second},
		"the second, as the first is not read":    {[]Object{broken, deployment(unhealthy)}, 1, 30 * time.Second},
		"one of which the version before runs":    {[]Object{updating}, 1, 30 * time.Second},
		"none, as no object that waits has Pods":  {[]Object{service}, 0, 0},
		"none, as none is there":                  {[]Object{{Known: true}}, 0, 0},
		"none, as it is not known whether it is":  {[]Object{{}}, 0, 0},
		"none, as its health is being asked for ": {[]Object{{Observed: &members.Observed{Pending: true, Health: unhealthy}}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock, member := clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), &ward{}
			all, again := New(clock, 0), time.Duration(0)
			for range 2 {
				again = all.Report(t.Context(), member, work(1), tc.objects, &workv1alpha1.WorkStatus{})
				clock.SetTime(clock.Now().Add(30 * time.Second))
			}
			if len(member.asked) != tc.asked || again != tc.again {
				t.Errorf("asked %q, again after %s", member.asked, again)
			}
		})
	}
}

// TestAThousandHealthyOnesCostNothing: neither requests, nor memory, nor timers.
func TestAThousandHealthyOnesCostNothing(t *testing.T) {
	clock, member := clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), &ward{}
	all := New(clock, 0)
	for range 3 {
		for i := range 1000 {
			w, status := work(1), &workv1alpha1.WorkStatus{}
			w.Name = fmt.Sprint("web-", i)
			if again := all.Report(t.Context(), member, w, []Object{deployment(healthy)}, status); again != 0 || len(status.Conditions) > 0 {
				t.Fatalf("again after %s, %+v", again, status)
			}
		}
		clock.SetTime(clock.Now().Add(time.Hour))
	}
	if len(member.asked) > 0 || len(all.cases) > 0 {
		t.Errorf("asked %d times, %d kept", len(member.asked), len(all.cases))
	}
}

// TestAThousandThatFailAtOnce: as when a registry is down. They are looked at one after the other, and the member has time
// for all else.
func TestAThousandThatFailAtOnce(t *testing.T) {
	clock, member := clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), &ward{pods: []corev1.Pod{waiting("ErrImagePull", "no such image: a:1")}}
	all, due, reported := New(clock, 0), map[string]time.Time{}, map[string]bool{}
	for i := range 1000 {
		due[fmt.Sprint("web-", i)] = clock.Now()
	}
	most := 0
	for range 150 {
		member.asked = nil
		for name, at := range due {
			if clock.Now().Before(at) {
				continue
			}
			w, status := work(1), &workv1alpha1.WorkStatus{}
			w.Name = name
			due[name] = clock.Now().Add(all.Report(t.Context(), member, w, []Object{deployment(unhealthy)}, status))
			reported[name] = reported[name] || podsReady(status) != ""
		}
		most = max(most, len(member.asked))
		clock.SetTime(clock.Now().Add(time.Second))
	}
	if most > 11 || len(reported) != 1000 || slices.Contains(slices.Collect(maps.Values(reported)), false) {
		t.Errorf("%d lists in a second", most)
	}
}

// TestAMemberThatIsSlow: lists of Pods that take long do not keep all workers of a cluster.
func TestAMemberThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member, again := &slow{}, make(chan time.Duration, 6)
		all := New(clock.RealClock{}, time.Second)
		report := func(i int) time.Duration {
			w := work(1)
			w.Name = fmt.Sprint("web-", i)
			return all.Report(t.Context(), member, w, []Object{deployment(unhealthy)}, &workv1alpha1.WorkStatus{})
		}
		for i := range cap(again) {
			report(i)
		}
		time.Sleep(2 * time.Second)
		for i := range cap(again) {
			go func() {
				wait := report(i)
				if wait < time.Second { // it has its turn then
					time.Sleep(wait)
					wait = report(i)
				}
				again <- wait
			}()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := member.waiting.Load(); got != 4 || len(again) != 2 {
			t.Errorf("%d lists at a time, %d have gone on", got, len(again))
		}
		for range cap(again) {
			if wait := <-again; wait > 2*time.Second {
				t.Errorf("again after %s", wait)
			}
		}
	})
}

// slow is a member that does not answer.
type slow struct{ waiting atomic.Int32 }

func (s *slow) Warnings(context.Context, string, types.UID) ([]corev1.Event, error) { return nil, nil }

func (s *slow) Pods(ctx context.Context, _ string, _ metav1.ListOptions) ([]corev1.Pod, error) {
	s.waiting.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestForget: nothing is kept of a Work that is gone.
func TestForget(t *testing.T) {
	all, w := New(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), 0), work(1)
	all.Report(t.Context(), &ward{}, w, []Object{deployment(unhealthy)}, &workv1alpha1.WorkStatus{})
	if len(all.cases) != 1 {
		t.Fatalf("%d kept", len(all.cases))
	}
	if all.Forget(client.ObjectKeyFromObject(w)); len(all.cases) > 0 {
		t.Errorf("%d kept", len(all.cases))
	}
}
