package nodeprofile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/flotilla-io/flotilla/agent/kinds"
)

var notYet = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "node-profile", errors.New("not yet"))

// world is a hub that counts what it is asked, and a member with nodes.
type world struct {
	*testing.T
	hub   client.WithWatch
	drawn chan struct{} // one for each time that the nodes are looked at

	mu      sync.Mutex
	text    string // of the nodes; empty: not known
	asked   []string
	before  bool // it takes a profile, and nothing else
	refuses error
	back    chan struct{}
}

func worldOf(t *testing.T) *world {
	w := &world{T: t, text: "first", drawn: make(chan struct{}), back: make(chan struct{})}
	close(w.back)
	note := func(what string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, what)
		if w.before && strings.Contains(what, "/") {
			return notYet
		}
		return w.refuses
	}
	w.hub = fake.NewClientBuilder().WithScheme(kinds.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			if err := note("get"); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, o...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			if err := note("create " + saysOf(obj)); err != nil {
				return err
			}
			return c.Create(ctx, obj, o...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			if err := note("update " + saysOf(obj)); err != nil {
				return err
			}
			return c.Update(ctx, obj, o...)
		},
	}).Build()
	return w
}

func (w *world) set(edit func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit()
}

func (w *world) teller() *Publisher {
	return New(w.hub, Options{
		Cluster: "east",
		Draw: func(context.Context) (map[string]string, error) {
			w.drawn <- struct{}{}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.text == "" {
				return nil, errors.New("not known")
			}
			profile, waiting, some := strings.Cut(w.text, "/")
			data := map[string]string{"profile": profile}
			if some {
				data["waiting"] = waiting
			}
			return data, nil
		},
		Back: func() <-chan struct{} {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.back
		},
	})
}

// saysOf returns the texts of a ConfigMap.
func saysOf(obj client.Object) string {
	data := obj.(*corev1.ConfigMap).Data
	return strings.TrimSuffix(data["profile"]+"/"+data["waiting"], "/")
}

// reported returns what the hub has, and what it was asked since the last call.
func (w *world) reported() string {
	w.mu.Lock()
	asked := w.asked
	w.asked = nil
	w.mu.Unlock()
	is := &corev1.ConfigMap{}
	err := client.IgnoreNotFound(w.hub.Get(w.Context(), client.ObjectKey{Namespace: "karmada-es-east", Name: "node-profile"}, is))
	w.set(func() { w.asked = nil })
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(saysOf(is), asked)
}

// TestWhatChangedIsReported looks at what is asked of it, look after look.
func TestWhatChangedIsReported(t *testing.T) {
	w := worldOf(t)
	of := w.teller()
	var got []string
	for _, step := range []func(){
		func() {},
		func() {},
		func() { w.text = "second" },
		func() { w.text = "" },
		func() { w.text = "third"; w.refuses = notYet },
		func() { w.refuses = nil },
		func() { w.back = make(chan struct{}); close(w.back) }, // it was away
		func() {
			if err := w.hub.Delete(t.Context(), object("east", nil)); err != nil {
				t.Error(err)
			}
		},
		func() { w.text = "fourth" },
		func() { w.text = "fourth/something waits" },
		func() {},
		func() { w.back = make(chan struct{}); close(w.back) },
		func() { w.text = "fourth" },
		func() { w.text, w.before = "fifth/something waits", true },
		func() {},
		func() { w.back, w.before = make(chan struct{}), false; close(w.back) },
	} {
		w.set(step)
		go func() { <-w.drawn }()
		err := of.publish(t.Context())
		w.set(func() { w.refuses = nil })
		says := ""
		if err != nil {
			says = " " + err.Error()
		}
		got = append(got, w.reported()+says)
	}
	want := []string{
		"first[get create first]",
		"first[]",
		"second[update second]",
		"second[] nothing is known of the nodes: not known",
		`second[update third] tell of the nodes: configmaps "node-profile" is forbidden: not yet`,
		"third[get update third]",
		"third[get]",
		"[]",
		"fourth[update fourth create fourth]",
		"fourth/something waits[update fourth/something waits]",
		"fourth/something waits[]",
		"fourth/something waits[get]",
		"fourth[update fourth]",
		"fifth[update fifth/something waits get update fifth]",
		"fifth[]",
		"fifth/something waits[get update fifth/something waits]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// run has a Publisher publish until the test ends, of nodes that change all the time, and returns
// what returns how long it takes until they are looked at again.
func (w *world) run(of *Publisher) (next func() time.Duration) {
	ctx, stop := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); of.Run(ctx) }()
	w.Cleanup(func() { stop(); <-ended })
	last := time.Now()
	return func() time.Duration {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				of.Changed()
			case <-w.drawn:
				took := time.Since(last)
				last = time.Now()
				return took.Round(debouncePeriod)
			}
		}
	}
}

func TestManyChangesAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldOf(t)
		of := w.teller()
		next := w.run(of)
		of.Changed()
		if got := next(); got != debouncePeriod {
			t.Errorf("the first change is told after %s, want %s", got, debouncePeriod)
		}
		synctest.Wait()
		if got := w.reported(); got != "first[get create first]" {
			t.Errorf("the hub has %s", got)
		}
		for range 3 {
			if got := next(); got != every+debouncePeriod {
				t.Errorf("the next is told after %s, want %s", got, every+debouncePeriod)
			}
		}
	})
}

// TestWhatFailsIsTriedAgain has the nodes unknown, and the hub refuse the report.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	cases := map[string]struct {
		fault func(w *world)
		want  []time.Duration // beyond the second that changes gather
	}{
		"nothing is known": {func(w *world) { w.text = "" }, []time.Duration{0, 1, 2, 4, 8, 10, 10}},
		"it is refused":    {func(w *world) { w.refuses = errors.New("no") }, []time.Duration{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := worldOf(t)
				tc.fault(w)
				of := w.teller()
				next := w.run(of)
				of.Changed()
				for i, want := range tc.want {
					if got := next(); got != want*time.Second+debouncePeriod {
						t.Errorf("try %d is after %s, want %s", i+1, got, want*time.Second+debouncePeriod)
					}
				}
				w.set(func() { w.text, w.refuses = "third", nil })
				next()
				synctest.Wait()
				if got := next(); got != every+debouncePeriod {
					t.Errorf("once it is told, the next is after %s, want %s", got, every+debouncePeriod)
				}
				if is := w.reported(); !strings.HasPrefix(is, "third") {
					t.Errorf("the hub has %s", is)
				}
			})
		})
	}
}

// TestNothingIsAskedOfAHubThatIsAway has it come back.
func TestNothingIsAskedOfAHubThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := worldOf(t)
		away := make(chan struct{})
		w.back = away
		of := w.teller()
		next := w.run(of)
		of.Changed()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := w.reported(); got != "[]" {
			t.Errorf("it was asked %s", got)
		}
		close(away)
		if got := next(); got != time.Hour+debouncePeriod {
			t.Errorf("the nodes are looked at after %s, want %s", got, time.Hour+debouncePeriod)
		}
	})
}
