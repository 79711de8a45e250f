package eventwriter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// sink is a hub that notes what it is sent.
type sink struct {
	mu    sync.Mutex
	notes []string
	at    []time.Time
	fail  []error // the next answers
	slow  time.Duration
}

func (s *sink) note(format string, args ...any) error {
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.fail) > 0 {
		err := s.fail[0]
		if s.fail = s.fail[1:]; err != nil {
			return err
		}
	}
	s.notes, s.at = append(s.notes, fmt.Sprintf(format, args...)), append(s.at, time.Now())
	return nil
}

func (s *sink) Create(e *corev1.Event) (*corev1.Event, error) {
	return e, s.note("%s %s/%s: %s", e.Reason, e.Namespace, e.InvolvedObject.Name, e.Message)
}

func (s *sink) Update(e *corev1.Event) (*corev1.Event, error) { return e, errors.New("nobody updates") }

func (s *sink) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) {
	return e, s.note("%s %s/%s: %d times", e.Reason, e.Namespace, e.InvolvedObject.Name, e.Count)
}

// run starts a writer in a bubble; it ends with the test.
func run(t *testing.T, to *sink, opts Options) *Writer {
	t.Helper()
	w := New(to, scheme.Scheme, opts)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return w
}

func web(name string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

// awaitIdle waits until all that waits is written.
func awaitIdle() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func TestEventsAreWritten(t *testing.T) {
	gone := apierrors.NewNotFound(corev1.Resource("events"), "x")
	refused := apierrors.NewForbidden(corev1.Resource("events"), "x", errors.New("no"))
	for name, tc := range map[string]struct {
		report func(w *Writer)
		fail   []error
		want   []string
	}{
		"without what a terminal would obey": {
			report: func(w *Writer) {
				w.Event(web("a"), "Normal", "One", "a first one")
				w.Event(web("a"), "Normal", "One", "path /spec/\x1b[2J\a\u202e:\nnot there")
			},
			want: []string{`One shop/a: path /spec/\u001b[2J\u0007\u202e:` + "\nnot there"},
		},
		"in the order in which they came": {
			report: func(w *Writer) {
				w.Event(web("a"), "Normal", "One", "1")
				w.Event(web("b"), "Normal", "One", "2")
				w.Event(web("a"), "Normal", "Two", "3")
			},
			want: []string{"One shop/a: 1", "One shop/b: 2", "Two shop/a: 3"},
		},
		"of one reason in one moment the last": {
			report: func(w *Writer) {
				w.Event(web("a"), "Normal", "One", "1")
				w.Event(web("a"), "Normal", "One", "2")
			},
			want: []string{"One shop/a: 2"},
		},
		"the same again is counted up": {
			report: func(w *Writer) {
				w.Event(web("a"), "Normal", "One", "1")
				awaitIdle()
				w.Event(web("a"), "Normal", "One", "1")
			},
			want: []string{"One shop/a: 1", "One shop/a: 2 times"},
		},
		"the same again, after the first has expired": {
			report: func(w *Writer) {
				w.Event(web("a"), "Normal", "One", "1")
				awaitIdle()
				w.Event(web("a"), "Normal", "One", "1")
			},
			fail: []error{nil, gone},
			want: []string{"One shop/a: 1", "One shop/a: 1"},
		},
		"warnings first": {
			report: func(w *Writer) {
				w.Event(web("a"), "Normal", "One", "1")
				w.Event(web("a"), "Warning", "Bad", "2")
			},
			want: []string{"Bad shop/a: 2", "One shop/a: 1"},
		},
		"what has no namespace is told in default": {
			report: func(w *Writer) {
				w.Event(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, "Normal", "One", "1")
			},
			want: []string{"One default/n: 1"},
		},
		"a hub that is away for a moment is asked again": {
			report: func(w *Writer) { w.Event(web("a"), "Normal", "One", "1") },
			fail:   []error{errors.New("connection refused")},
			want:   []string{"One shop/a: 1"},
		},
		"what is refused stays so, and holds up nothing": {
			report: func(w *Writer) {
				w.Event(web("a"), "Normal", "One", "1")
				w.Event(web("b"), "Normal", "One", "2")
			},
			fail: []error{refused},
			want: []string{"One shop/b: 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &sink{fail: tc.fail}
				w := run(t, to, Options{})
				tc.report(w)
				awaitIdle()
				if diff := cmp.Diff(tc.want, to.notes); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestChatterTakesNoPlace: what tells of progress again and again does not use up the room of what tells that something
// was deleted, and no message of that is replaced.
func TestChatterTakesNoPlace(t *testing.T) {
	const commits = 40
	synctest.Test(t, func(t *testing.T) {
		to := &sink{}
		w := run(t, to, Options{Lasting: []string{"Deleted"}})
		for n := range commits {
			w.Event(web("a"), "Normal", "Waits", fmt.Sprint("dependency ", n))
			w.Event(web("a"), "Warning", "Failed", fmt.Sprint("dependency ", n))
			w.Event(web("a"), "Normal", "Deleted", fmt.Sprint(n))
			w.Event(web("a"), "Normal", "Deleted", fmt.Sprint("and ", n))
			time.Sleep(10 * time.Second)
		}
		w.Event(web("a"), "Warning", "Stalled", "last")
		awaitIdle()
		var want, got []string
		for n := range commits {
			want = append(want, fmt.Sprint("Deleted shop/a: ", n), fmt.Sprint("Deleted shop/a: and ", n))
		}
		want = append(want, "Stalled shop/a: last")
		waits := 0
		for _, note := range to.notes {
			switch {
			case strings.HasPrefix(note, "Waits"):
				waits++
			case !strings.HasPrefix(note, "Failed"):
				got = append(got, note)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if waits > mostAtOnce+2 {
			t.Errorf("%d events tell of progress, want %d and one each five minutes", waits, mostAtOnce)
		}
	})
}

// TestAFloodOfWhatLastsHasAnEnd: a loop that runs wild fills no store.
func TestAFloodOfWhatLastsHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &sink{}
		w := run(t, to, Options{Lasting: []string{"Deleted"}})
		for n := range 3000 {
			w.Event(web("a"), "Normal", "Deleted", fmt.Sprint(n))
			time.Sleep(100 * time.Millisecond)
		}
		awaitIdle()
		if got := len(to.notes); got < mostLasting || got > mostLasting+15 {
			t.Errorf("%d events in five minutes, want %d and two a minute", got, mostLasting)
		}
	})
}

// TestTheRate: what is more than a burst is spread, and warnings do not wait for it.
func TestTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &sink{}
		w := run(t, to, Options{Burst: 10, PerSecond: 10})
		begin := time.Now()
		for i := range 40 {
			w.Event(web(fmt.Sprint(i)), "Normal", "One", "1")
		}
		time.Sleep(time.Second)
		w.Event(web("bad"), "Warning", "Bad", "2")
		awaitIdle()
		if len(to.notes) != 41 {
			t.Fatalf("%d events were written, want 41", len(to.notes))
		}
		if took := to.at[40].Sub(begin); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("40 events at 10 a second after a burst of 10 took %s", took)
		}
		for i, note := range to.notes {
			if reported := to.at[i].Sub(begin); strings.HasPrefix(note, "Bad") && reported > 2*time.Second {
				t.Errorf("the warning of second 1 was written after %s", reported)
			}
		}
	})
}

// TestThereIsAnEndToWhatWaits: the rest is dropped and counted, and nobody waits.
func TestThereIsAnEndToWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, metrics := &sink{}, prometheus.NewPedanticRegistry()
		w := run(t, to, Options{Most: 3, Metrics: metrics})
		for i := range 5 {
			w.Event(web(fmt.Sprint(i)), "Normal", "One", "1")
		}
		w.Event(web("bad"), "Warning", "Bad", "2") // has room of its own
		awaitIdle()
		const want = `
# HELP flotilla_events_total Events that were to be written, by what became of them: written, folded into a later one, dropped for lack of room, or failed
# TYPE flotilla_events_total counter
flotilla_events_total{outcome="dropped"} 2
flotilla_events_total{outcome="written"} 4
`
		if err := testutil.GatherAndCompare(metrics, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		w.Event(web("later"), "Normal", "One", "1")
		if awaitIdle(); len(to.notes) != 5 {
			t.Errorf("%d events were written, want 5: there is room again", len(to.notes))
		}
	})
}

// TestASecondWriterOfTheProcess counts on where the first ended.
func TestASecondWriterOfTheProcess(t *testing.T) {
	metrics := prometheus.NewPedanticRegistry()
	for range 2 {
		w := New(&sink{}, scheme.Scheme, Options{Metrics: metrics})
		w.count("dropped")
	}
	if n, err := testutil.GatherAndCount(metrics); err != nil || n != 1 {
		t.Errorf("%d counts, %v", n, err)
	}
}

// TestTenantsTakeTurns: who reports little is told of soon, however much others tell,
// and finds room where others have taken all.
func TestTenantsTakeTurns(t *testing.T) {
	work := &metav1.ObjectMeta{Namespace: "karmada-es-east", Annotations: map[string]string{"of": "quiet"}}
	of := func(namespace, name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name}
	}
	for name, reported := range map[string]struct {
		obj  runtime.Object
		want string
	}{
		"of its own namespace":                 {of("quiet", "web"), "One quiet/web: 2"},
		"of an object in another one's, as it": {&corev1.ConfigMap{ObjectMeta: *work}, "One karmada-es-east/: 2"},
	} {
		for kind, eventType := range map[string]string{"a success": "Normal", "a warning": "Warning"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					to := &sink{slow: 100 * time.Millisecond}
					w := run(t, to, Options{Burst: 1, PerSecond: 10, Most: 100, Tenant: func(obj runtime.Object) string {
						if o, is := obj.(*corev1.ConfigMap); is {
							return o.Annotations["of"]
						}
						return obj.(*corev1.ObjectReference).Namespace
					}})
					for i := range 200 {
						w.Event(of("loud", fmt.Sprint(i)), eventType, "One", "1")
						w.Event(of("karmada-es-east", fmt.Sprint(i)), eventType, "One", "1")
					}
					begin := time.Now()
					w.Event(reported.obj, eventType, "One", "2")
					awaitIdle()
					at := slices.Index(to.notes, reported.want)
					if at < 0 {
						t.Fatalf("it is not among the %d that were written", len(to.notes))
					}
					if took := to.at[at].Sub(begin); took > 2*time.Second {
						t.Errorf("it was written after %s", took)
					}
				})
			})
		}
	}
}
