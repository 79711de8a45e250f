package alerting

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

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	notificationv1 "github.com/fluxcd/notification-controller/api/v1"
	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/policies/message"
	"github.com/flotilla-io/flotilla/sources/messenger"
)

func alertTo(name, provider string, refs ...notificationv1.CrossNamespaceObjectReference) *notificationv1beta3.Alert {
	if len(refs) == 0 {
		refs = []notificationv1.CrossNamespaceObjectReference{{Kind: "Kustomization", Name: "*"}, {Kind: "GitRepository", Name: "*"}}
	}
	return &notificationv1beta3.Alert{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       notificationv1beta3.AlertSpec{ProviderRef: meta.LocalObjectReference{Name: provider}, EventSources: refs},
	}
}

func providerOf(name, kind string) *notificationv1beta3.Provider {
	return &notificationv1beta3.Provider{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: notificationv1beta3.ProviderSpec{Type: kind, Address: "https://" + name + ".example.com"}}
}

func kustomization(revision string) *kustomizev1.Kustomization {
	return &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Status:     kustomizev1.KustomizationStatus{LastAttemptedRevision: revision},
	}
}

// world is a hub with a loop that sends to nowhere.
type world struct {
	*Reconciler
	hub client.Client

	mu     sync.Mutex
	events []string
	sent   []string
	send   func(host string) error
}

func (w *world) Event(obj runtime.Object, _, reason, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if alert, is := obj.(*notificationv1beta3.Alert); is {
		w.events = append(w.events, alert.Name+": "+reason+": "+text)
	}
}

func (w *world) post(ctx context.Context, _ messenger.Target, r message.Request) error {
	if w.send != nil {
		if err := w.send(r.URL.Host); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
			}
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, fmt.Sprintf("%s %s", strings.TrimSuffix(r.URL.Host, ".example.com"), r.Body))
	return nil
}

// start runs the loop in a bubble, with the objects read.
func start(t *testing.T, opts Options, objects ...client.Object) *world {
	t.Helper()
	w := &world{hub: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).Build()}
	opts.Send = w.post
	w.Reconciler = New(w.hub, w.hub, w, opts)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	for _, o := range objects {
		if _, is := o.(*notificationv1beta3.Alert); is {
			w.reconcile(t, o.GetName())
		}
	}
	return w
}

func (w *world) reconcile(t *testing.T, name string) {
	t.Helper()
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: name}}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) took() (sent, events []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.sent)
	return w.sent, w.events
}

func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestMessages(t *testing.T) {
	git := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "fleet"}, Status: sourcev1.GitRepositoryStatus{Artifact: &meta.Artifact{Revision: "main@sha1:2"}}}
	const dated = `"timestamp":"2000-01-01T00:00:05Z"`
	failure := `{"involvedObject":{"kind":"Kustomization","namespace":"shop","name":"web","apiVersion":"kustomize.toolkit.fluxcd.io/v1"},"severity":"error",` + dated + `,"message":"no file","reason":"BuildFailed","metadata":{"revision":"main@sha1:1"},"reportingController":"flotilla"}`
	artifact := `{"involvedObject":{"kind":"GitRepository","namespace":"shop","name":"fleet","apiVersion":"source.toolkit.fluxcd.io/v1"},"severity":"info",` + dated + `,"message":"stored","reason":"NewArtifact","metadata":{"revision":"main@sha1:2"},"reportingController":"flotilla"}`
	suspended := providerOf("chat", "generic")
	suspended.Spec.Suspend = true
	for name, tc := range map[string]struct {
		objects      []client.Object
		report       func(w *world)
		want, events []string
	}{
		"of a Kustomization that fails, and of a new revision": {
			objects: []client.Object{alertTo("a", "chat"), providerOf("chat", "generic")},
			report: func(w *world) {
				w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", "no file")
				w.Recorder().Event(git, corev1.EventTypeNormal, "NewArtifact", "stored")
			},
			want: []string{"chat " + artifact, "chat " + failure},
		},
		"once, of what is said again and again": {
			objects: []client.Object{alertTo("a", "chat"), providerOf("chat", "generic")},
			report: func(w *world) {
				for range 5 {
					w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", "no file")
				}
			},
			want: []string{"chat " + failure},
		},
		"to each that asks": {
			objects: []client.Object{alertTo("a", "chat"), alertTo("b", "pager"), providerOf("chat", "generic"), providerOf("pager", "generic")},
			report: func(w *world) {
				w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", "no file")
			},
			want: []string{"chat " + failure, "pager " + failure},
		},
		"not of other kinds, nor of other namespaces": {
			objects: []client.Object{alertTo("a", "chat"), providerOf("chat", "generic")},
			report: func(w *world) {
				w.Recorder().Event(&corev1.ConfigMap{ObjectMeta: git.ObjectMeta}, corev1.EventTypeWarning, "BuildFailed", "no file")
				other := kustomization("main@sha1:1")
				other.Namespace = "infra"
				w.Recorder().Event(other, corev1.EventTypeWarning, "BuildFailed", "no file")
			},
		},
		"none to forges, which have statuses": {
			objects: []client.Object{alertTo("a", "forge"), providerOf("forge", "github")},
			report: func(w *world) {
				w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", "no file")
			},
		},
		"none to who is suspended": {
			objects: []client.Object{alertTo("a", "chat"), suspended},
			report: func(w *world) {
				w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", "no file")
			},
		},
		"and what has no effect is said": {
			objects: []client.Object{alertTo("a", "cht", notificationv1.CrossNamespaceObjectReference{Kind: "HelmRelease", Name: "*"}), alertTo("b", "pager"), alertTo("c", "chat", notificationv1.CrossNamespaceObjectReference{Kind: "HelmRelease", Name: "*"}),
				alertTo("d", "sign"), providerOf("chat", "generic"), providerOf("pager", "opsgenie"), providerOf("sign", "generic-hmac")},
			report: func(w *world) {},
			events: []string{
				"a: ProviderNotReady: the Provider cht does not exist (did you mean chat?): create it, or correct spec.providerRef; spec.eventSources[0].kind: HelmRelease is not served yet, and has no events: use GitRepository, OCIRepository, Bucket, ExternalArtifact, Kustomization",
				"b: ProviderNotReady: the Provider pager: spec.type: opsgenie is not served yet, and nothing is sent: use one of alertmanager, discord, generic, generic-hmac, githubdispatch, googlechat, grafana, matrix, msteams, pagerduty, slack",
				"c: AlertNotReady: spec.eventSources[0].kind: HelmRelease is not served yet, and has no events: use GitRepository, OCIRepository, Bucket, ExternalArtifact, Kustomization",
				"d: ProviderNotReady: the Provider sign: spec.secretRef: it names no Secret, and generic-hmac needs one: create it with the key token, and name it here",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, Options{}, tc.objects...)
				advance(5 * time.Second)
				tc.report(w)
				for _, o := range tc.objects { // what is said once is not said again
					if _, is := o.(*notificationv1beta3.Alert); is {
						w.reconcile(t, o.GetName())
					}
				}
				advance(time.Minute)
				sent, events := w.took()
				if diff := cmp.Diff(tc.want, sent); diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tc.events, events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestTheFirstMoments: what happens before all Alerts are known is told then.
func TestTheFirstMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Options{}, alertTo("late", "chat"), providerOf("chat", "generic"))
		w.book.drop(client.ObjectKey{Namespace: "shop", Name: "late"})
		w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", "no file")
		advance(time.Second)
		w.reconcile(t, "late")
		advance(5 * time.Second)
		if sent, _ := w.took(); len(sent) != 1 {
			t.Errorf("%d were sent, want 1", len(sent))
		}
	})
}

// TestFaults: what may pass is tried again, the rest is lost, and the Alert says so once.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		faults []error // of the tries, the last for all that follow
		after  time.Duration
		sent   int
		events []string
	}{
		"down for a moment": {
			faults: []error{errors.New("connection refused"), &messenger.LaterError{Code: 503}, nil}, after: time.Minute, sent: 2,
			events: []string{
				"a: MessageNotSent: the Provider chat is not told of events: connection refused; each message is tried for 15 minutes",
				"a: MessageNotSent: the Provider chat is not told of events: the receiver answers HTTP 503 Service Unavailable; each message is tried for 15 minutes",
				"a: MessageSent: the Provider chat is told of events again",
			},
		},
		"it asks to wait": {
			faults: []error{&messenger.LaterError{Code: 429, After: 10 * time.Minute}, nil}, after: 9 * time.Minute,
			events: []string{"a: MessageNotSent: the Provider chat is not told of events: the receiver answers HTTP 429 Too Many Requests; each message is tried for 15 minutes"},
		},
		"and gets that": {
			faults: []error{&messenger.LaterError{Code: 429, After: 10 * time.Minute}, nil}, after: 11 * time.Minute, sent: 2,
			events: []string{"a: MessageNotSent: the Provider chat is not told of events: the receiver answers HTTP 429 Too Many Requests; each message is tried for 15 minutes", "a: MessageSent: the Provider chat is told of events again"},
		},
		"down for ever": {
			faults: []error{errors.New("connection refused")}, after: 24 * time.Hour,
			events: []string{"a: MessageNotSent: the Provider chat is not told of events: connection refused; each message is tried for 15 minutes"},
		},
		"one is refused, and the next one is not": {
			faults: []error{messenger.ErrRefused, nil}, after: time.Second, sent: 1,
			events: []string{"a: MessageNotSent: the Provider chat is not told of events: message refused; until that is put right, messages are lost", "a: MessageSent: the Provider chat is told of events again"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, Options{}, alertTo("a", "chat"), providerOf("chat", "generic"))
				tries := 0
				w.send = func(string) error {
					tries++
					return tc.faults[min(tries, len(tc.faults))-1]
				}
				advance(5 * time.Second)
				for _, text := range []string{"1", "2"} {
					w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", text)
				}
				advance(tc.after)
				sent, events := w.took()
				if len(sent) != tc.sent {
					t.Errorf("%d were sent, want %d", len(sent), tc.sent)
				}
				if diff := cmp.Diff(tc.events, events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if tries > 40 {
					t.Errorf("%d tries", tries)
				}
			})
		})
	}
}

// TestAnOldComplaint: that no message arrives is said again before the Event about it is gone.
func TestAnOldComplaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Options{}, alertTo("a", "chat"), providerOf("chat", "generic"))
		w.send = func(string) error { return messenger.ErrRefused }
		advance(5 * time.Second)
		for i := range 7 {
			w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", fmt.Sprint(i))
			advance(10 * time.Minute)
		}
		const lost = "a: MessageNotSent: the Provider chat is not told of events: message refused; until that is put right, messages are lost"
		if _, events := w.took(); !slices.Equal(events, []string{lost, lost, lost}) {
			t.Errorf("events: %v, want one in half an hour", events)
		}
	})
}

// TestOneDeadAddressDelaysNoOther, not even many of them, and what waits for them is bounded.
func TestOneDeadAddressDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := []client.Object{alertTo("dead", "dead"), alertTo("quick", "quick"), providerOf("dead", "generic"), providerOf("quick", "generic")}
		w := start(t, Options{}, objects...)
		w.send = func(host string) error {
			if strings.HasPrefix(host, "dead") {
				return context.DeadlineExceeded // after an hour
			}
			return nil
		}
		advance(5 * time.Second)
		for i := range 200 {
			w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", fmt.Sprint(i))
			advance(time.Millisecond)
		}
		if sent, _ := w.took(); len(sent) != 200 {
			t.Errorf("%d were sent, want 200", len(sent))
		}
		if w.outbox.waiting > mostOfAlert {
			t.Errorf("%d wait, want at most %d", w.outbox.waiting, mostOfAlert)
		}
	})
}

// TestRoomIsShared: who floods the box keeps nobody else out.
func TestRoomIsShared(t *testing.T) {
	o := newOutbox(nil)
	e, _, _ := subject(kustomization("1"))
	for i := range 3 * mostWaiting {
		o.add(client.ObjectKey{Namespace: "loud", Name: fmt.Sprint(i)}, e())
	}
	o.add(client.ObjectKey{Namespace: "quiet", Name: "a"}, e())
	if o.byTenant["loud"] != mostWaiting || o.byTenant["quiet"] != 1 {
		t.Errorf("%v, want %d and 1", o.byTenant, mostWaiting)
	}
	o.drop(client.ObjectKey{Namespace: "quiet", Name: "a"})
	if _, more := o.next(client.ObjectKey{Namespace: "quiet", Name: "a"}); more || o.byTenant["quiet"] != 0 {
		t.Error("want nothing left of what was dropped")
	}
}

// TestNobodyAsks: without Alerts for messages nothing is kept of an Event.
func TestNobodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Options{}, alertTo("a", "forge"), providerOf("forge", "github"))
		advance(5 * time.Second)
		recorder, ks := w.Recorder(), kustomization("main@sha1:1")
		if n := testing.AllocsPerRun(100, func() { recorder.Event(ks, corev1.EventTypeNormal, "Progressing", "1/3") }); n > 2 {
			t.Errorf("an Event takes %v allocations", n)
		}
		if len(w.intake.recents) != 0 || len(w.outbox.queues) != 0 {
			t.Error("something is kept")
		}
	})
}

// TestAnAlertThatGoes: what waits for it is not sent, and its rule is forgotten.
func TestAnAlertThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alert := alertTo("a", "chat")
		w := start(t, Options{}, alert, providerOf("chat", "generic"))
		fault := errors.New("connection refused")
		w.send = func(string) error { return fault }
		advance(5 * time.Second)
		for _, text := range []string{"1", "2"} {
			w.Recorder().Event(kustomization("main@sha1:1"), corev1.EventTypeWarning, "BuildFailed", text)
		}
		advance(time.Second)
		if err := w.hub.Delete(t.Context(), alert); err != nil {
			t.Fatal(err)
		}
		w.reconcile(t, "a")
		fault = nil
		advance(time.Hour)
		if sent, _ := w.took(); len(sent) != 0 || len(w.outbox.queues) != 0 || len(w.book.rules) != 0 || len(w.book.about) != 0 || len(w.complaints.by) != 0 {
			t.Errorf("sent %v, kept %v %v %v", sent, w.outbox.queues, w.book.rules, w.complaints.by)
		}
	})
}

// TestALongEvent: a message is cut between characters, and shows that it was cut.
func TestALongEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, Options{})
		w.complain(&notificationv1beta3.Alert{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}, ReasonAlertNotReady, strings.Repeat("é", mostText))
		_, events := w.took()
		if want := "a: AlertNotReady: " + strings.Repeat("é", (mostText-len("…"))/2) + "…"; !slices.Equal(events, []string{want}) {
			t.Errorf("%q, want %q", events, want)
		}
	})
}
