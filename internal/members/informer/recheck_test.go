package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// oracle is an interpreter that answers as configured.
type oracle struct {
	mu     sync.Mutex
	health map[string]any // by name: a health, or an error
	asked  int
}

func (o *oracle) say(name string, answer any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.health[name] = answer
}

func (o *oracle) ReflectStatus(*unstructured.Unstructured) (*runtime.RawExtension, error) {
	return &runtime.RawExtension{Raw: []byte(`{"seen":true}`)}, nil
}

func (o *oracle) Health(obj *unstructured.Unstructured) (workv1alpha1.ResourceHealth, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	switch answer := o.health[obj.GetName()].(type) {
	case error:
		return workv1alpha1.ResourceUnknown, answer
	case workv1alpha1.ResourceHealth:
		return answer, nil
	default:
		return workv1alpha1.ResourceHealthy, nil
	}
}

func ship(name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	obj.SetGroupVersionKind(shipKind)
	obj.SetNamespace("sea")
	obj.SetName(name)
	obj.SetUID(types.UID(name))
	obj.SetResourceVersion("1")
	obj.SetLabels(map[string]string{workv1alpha2.ManagedByKarmadaLabel: workv1alpha2.ManagedByKarmadaLabelValue})
	return obj
}

// harbour is a watch of ships that does not run yet, and the events about them.
func harbour(o *oracle, objects ...runtime.Object) (*kindWatch, func() []string) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{ships.Resource: "ShipList"}, objects...)
	w := newWatch(client, func(context.Context, schema.GroupVersionKind) (Kind, error) { return ships, nil })
	w.interpreter, w.recheck = o, newRecheckQueue(o, w.clock)
	var mu sync.Mutex
	var reported []string
	w.changed = func(o *Observed) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, fmt.Sprintf("%s %s pending=%t %s", o.Name, o.Health, o.Pending, o.Fault))
	}
	w.synced = func(schema.GroupVersionKind) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, "synced")
	}
	return w, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := reported
		reported = nil
		return out
	}
}

// fleetOf runs a watch of ships, and returns the events about them.
func fleetOf(ctx context.Context, o *oracle, objects ...runtime.Object) (*kindWatch, func() []string) {
	w, reported := harbour(o, objects...)
	go w.recheck.run(ctx)
	go w.run(ctx)
	return w, reported
}

func TestAnAnswerThatComesLaterIsReportedThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{"slow": &kinds.Pending{Of: "a webhook", After: time.Second}}}
		w, reported := fleetOf(ctx, o, ship("fast"), ship("slow"))
		synctest.Wait()
		key := types.NamespacedName{Namespace: "sea", Name: "slow"}
		before, presence := w.read(key)
		if presence != Present || !before.Pending {
			t.Errorf("before the answer: %+v, %v", before, presence)
		}
		if fast, _ := w.read(types.NamespacedName{Namespace: "sea", Name: "fast"}); fast == nil || fast.Health != workv1alpha1.ResourceHealthy {
			t.Errorf("another object: %+v", fast)
		}
		reported()
		o.say("slow", workv1alpha1.ResourceUnhealthy)
		<-time.After(time.Second + 10*time.Millisecond) // of the bubble
		synctest.Wait()
		after, _ := w.read(key)
		if after.Pending || after.Health != workv1alpha1.ResourceUnhealthy || string(after.Status.Raw) != `{"seen":true}` {
			t.Errorf("after the answer: %+v", after)
		}
		if diff := cmp.Diff([]string{"slow Unhealthy pending=false "}, reported()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if len(w.recheck.kept) != 0 || len(w.recheck.due) != 0 || w.recheck.size != 0 {
			t.Errorf("kept: %v, %v, %d bytes", w.recheck.kept, w.recheck.due, w.recheck.size)
		}
	})
}

func TestObjectsThatWaitAreNotAllKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{}}
		var objects []runtime.Object
		for i := range 5 {
			obj := ship(fmt.Sprint("s", i))
			obj.Object["spec"] = map[string]any{"cargo": string(make([]byte, mostKept/3))}
			o.say(obj.GetName(), &kinds.Pending{Of: "a webhook", After: time.Second})
			objects = append(objects, obj)
		}
		w, _ := fleetOf(ctx, o, objects...)
		synctest.Wait()
		if len(w.recheck.kept) != 2 || w.recheck.size > mostKept {
			t.Errorf("%d objects are kept, %d bytes", len(w.recheck.kept), w.recheck.size)
		}
		o.mu.Lock()
		clear(o.health)
		o.mu.Unlock()
		<-time.After(2 * time.Second) // of the bubble
		synctest.Wait()
		for i := range 5 {
			if got, _ := w.read(types.NamespacedName{Namespace: "sea", Name: fmt.Sprint("s", i)}); got.Health != workv1alpha1.ResourceHealthy {
				t.Errorf("%s has no answer: %+v", got.Name, got)
			}
		}
	})
}

func TestARuleThatFailsIsReportedWithItsError(t *testing.T) {
	long := errors.New(string(make([]byte, 3*mostFault)))
	for name, tc := range map[string]struct {
		answer any
		want   string
	}{
		"an error":         {errors.New("health: no such field"), "health: no such field"},
		"a long error":     {long, excerpt.Bytes(long.Error(), mostFault)},
		"all is well":      {workv1alpha1.ResourceHealthy, ""},
		"it is on its way": {&kinds.Pending{Of: "a webhook"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := trim(ship("one"), &oracle{health: map[string]any{"one": tc.answer}})
			if err != nil || got.Fault != tc.want || len(got.Fault) > mostFault {
				t.Errorf("fault = %q, %v, want %q", got.Fault, err, tc.want)
			}
		})
	}
}

func TestRulesThatChangeAreAskedAnewWithoutAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{}}
		w, reported := fleetOf(ctx, o, ship("one"), ship("two"))
		synctest.Wait()
		reported()
		absent := make(chan string)
		watching, stop := context.WithCancel(ctx)
		go func() {
			defer close(absent)
			for watching.Err() == nil {
				if _, presence := w.read(types.NamespacedName{Namespace: "sea", Name: "one"}); presence != Present {
					absent <- fmt.Sprint("one is ", presence)
					return
				}
				<-time.After(time.Microsecond) // of the bubble
			}
		}()
		o.say("two", workv1alpha1.ResourceUnhealthy)
		signal(w.anew)
		<-time.After(100 * time.Millisecond) // of the bubble
		stop()
		for fault := range absent {
			t.Error(fault)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"synced", "two Unhealthy pending=false "}, reported()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if obj, err := w.client.Resource(ships.Resource).Namespace("sea").Get(ctx, "one", metav1.GetOptions{}); err != nil || obj.GetResourceVersion() != "1" {
			t.Errorf("the object was written: %v, %v", obj, err)
		}
	})
}

// passing is the error of one who may answer otherwise after a second.
type passing struct{ error }

func (passing) RetryAfter() time.Duration { return time.Second }

func TestAnObjectIsReadOnceForAllQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{"one": passing{errors.New("out of reach")}}}
		w, _ := fleetOf(ctx, o, ship("one"))
		synctest.Wait()
		o.say("one", &kinds.Pending{Of: "a webhook", After: 10 * time.Millisecond})
		<-time.After(1500 * time.Millisecond) // of the bubble
		o.say("one", workv1alpha1.ResourceHealthy)
		<-time.After(time.Second)
		synctest.Wait()
		if got, _ := w.read(types.NamespacedName{Namespace: "sea", Name: "one"}); got.Health != workv1alpha1.ResourceHealthy || got.Fault != "" {
			t.Errorf("after the answer: %+v", got)
		}
		reads := 0
		for _, a := range w.client.(*dynamicfake.FakeDynamicClient).Actions() {
			if a.GetVerb() == "get" {
				reads++
			}
		}
		if reads != 1 {
			t.Errorf("%d reads of the member", reads)
		}
		if len(w.recheck.kept) != 0 || len(w.recheck.due) != 0 || w.recheck.size != 0 {
			t.Errorf("kept: %v, %v, %d bytes", w.recheck.kept, w.recheck.due, w.recheck.size)
		}
	})
}

func TestAnAnswerAboutAFormerObjectDoesNotEndTheQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &oracle{health: map[string]any{"one": &kinds.Pending{Of: "a webhook", After: time.Second}}}
		w, _ := fleetOf(ctx, o, ship("one"))
		synctest.Wait()
		former := ship("one")
		former.SetResourceVersion("0")
		w.recheck.replace(w, former)
		o.say("one", workv1alpha1.ResourceHealthy)
		<-time.After(5 * time.Second) // of the bubble
		synctest.Wait()
		if got, _ := w.read(types.NamespacedName{Namespace: "sea", Name: "one"}); got.Pending {
			t.Errorf("nobody asked about the object as it is: %+v", got)
		}
	})
}

func TestAStatusThatIsTooLargeIsNoChangeEachTimeItGrows(t *testing.T) {
	var messages []string
	for _, size := range []int{mostStatus + 1, 2 * mostStatus} {
		_, err := reflected(&runtime.RawExtension{Raw: make([]byte, size)})
		messages = append(messages, fmt.Sprint(err))
	}
	const want = "the status has more than 262144 bytes, which are the most that are reflected"
	if diff := cmp.Diff([]string{want, want}, messages); diff != "" {
		t.Errorf("said (-want +got):\n%s", diff)
	}
}
