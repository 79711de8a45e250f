package members_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// hostile serves the API of a member that answers a list and a watch of
// ConfigMaps as it likes.
func hostile(t *testing.T, list, watch http.HandlerFunc) (*rest.Config, *atomic.Int32) {
	t.Helper()
	answered := new(atomic.Int32)
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["list","watch"]}]}`)
	})
	mux.HandleFunc("/api/v1/namespaces/kube-system", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"theirs"}}`)
	})
	mux.HandleFunc("/api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") == "true": // as servers that do not know it
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
		case r.URL.Query().Get("watch") == "true":
			watch(w, r)
		default:
			list(w, r)
			answered.Add(1)
		}
	})
	return &rest.Config{Host: serve(t, false, mux).URL}, answered
}

// flood answers with far more than anybody may take, and fails the test if it
// is taken.
func flood(t *testing.T, head string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, head)
		chunk := strings.Repeat("x", 1<<20)
		for range 200 {
			if _, err := fmt.Fprint(w, chunk); err != nil {
				return
			}
		}
		if r.Context().Err() == nil {
			t.Error("200 MiB were taken")
		}
	}
}

func write(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, text) }
}

// endless keeps a watch open that says nothing.
func endless(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// drip answers one byte at a time, for ever.
func drip(w http.ResponseWriter, r *http.Request) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := fmt.Fprint(w, " "); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

func configMapText(name, version, more string) string {
	return `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"shop","name":"` + name + `","uid":"u","resourceVersion":"` + version +
		`","labels":{"karmada.io/managed":"true"},"annotations":{"work.karmada.io/namespace":"karmada-es-other","work.karmada.io/name":"` + name + `"}}` + more + `}`
}

func listText(version string, items ...string) string {
	return `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"` + version + `"},"items":[` + strings.Join(items, ",") + `]}`
}

// TestHostileMembers has one member do its worst while another one is worked
// with: the registry stays up, what is kept stays small, and the other member
// does not notice.
func TestHostileMembers(t *testing.T) {
	const mib = 1 << 20
	status := func(size int) string {
		return `,"status":{"text":"` + strings.Repeat("x", size) + `"}`
	}
	one := types.NamespacedName{Namespace: "shop", Name: "one"}
	cases := map[string]struct {
		list, watch http.HandlerFunc
		want        members.Presence
		check       func(*members.Observed) error
		timeout     time.Duration // of a request; zero: that of production
	}{
		"a status of 50 MB": {
			list: write(listText("5", configMapText("one", "4", status(50*mib)))), watch: endless, want: members.Present,
			check: func(o *members.Observed) error {
				if o.Status != nil {
					return fmt.Errorf("a status of %d bytes is kept", len(o.Status.Raw))
				}
				return nil
			},
			timeout: 2 * time.Minute, // a slow machine takes its time over it
		},
		"a list that is larger than any": {
			list: flood(t, `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"data":{"x":"`), watch: endless, want: members.Unknown,
		},
		"a list that never ends, byte by byte": {list: drip, watch: endless, want: members.Unknown, timeout: 2 * time.Second},
		"a list that is no JSON":               {list: write(`{"kind":"ConfigMapList","items":[{{{`), watch: endless, want: members.Unknown},
		"a list of something else":             {list: write(`{"kind":"List","apiVersion":"v1","items":[7,null,{"kind":7}]}`), watch: endless, want: members.Unknown},
		"an event that is larger than any": {
			list:  write(listText("5", configMapText("one", "4", ""))),
			watch: flood(t, `{"type":"MODIFIED","object":{"data":{"x":"`), want: members.Present,
		},
		"a watch that is no JSON": {list: write(listText("5", configMapText("one", "4", ""))), watch: write("{{{{"), want: members.Present},
		"versions that go back": {
			list: write(listText("5", configMapText("one", "4", ""))),
			watch: func(w http.ResponseWriter, r *http.Request) {
				for _, version := range []string{"9", "2", "x", ""} {
					_, _ = fmt.Fprint(w, `{"type":"MODIFIED","object":`+configMapText("one", version, "")+"}\n")
				}
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}, want: members.Present,
		},
		"a watch that says nothing": {list: write(listText("5", configMapText("one", "4", ""))), watch: endless, want: members.Present},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reported := &log{}
			r := start(t, members.New(members.Options{Interpreter: interpreter.Native(), RequestTimeout: tc.timeout}), reported)
			config, answered := hostile(t, tc.list, tc.watch)
			bad, err := r.Connect(members.Target{Name: "bad", Config: config})
			if err != nil {
				t.Fatal(err)
			}
			config, _ = hostile(t, write(listText("5", configMapText("one", "4", ""))), endless)
			good, err := r.Connect(members.Target{Name: "good", Config: config})
			if err != nil {
				t.Fatal(err)
			}
			bad.Read(configMap, one)
			eventually(t, "the other member is worked with", func() error {
				if _, presence := good.Read(configMap, one); presence != members.Present {
					return fmt.Errorf("presence %v", presence)
				}
				return nil
			})
			eventually(t, "the member is known as far as it can be", func() error {
				if answered.Load() == 0 {
					return errors.New("it has not answered yet")
				}
				observed, presence := bad.Read(configMap, one)
				if presence != tc.want {
					return fmt.Errorf("presence %v, want %v", presence, tc.want)
				}
				if tc.check != nil {
					return tc.check(observed)
				}
				return nil
			})
		})
	}
}

func TestAMemberThatIsAnotherIsNotTrustedWhateverItAnswers(t *testing.T) {
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
	config, _ := hostile(t, drip, drip)
	m, err := r.Connect(members.Target{Name: "bad", ID: "ours", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prove(t.Context()); !errors.Is(err, members.ErrOtherCluster) {
		t.Errorf("Prove = %v", err)
	}
	if _, ok := r.Get("bad"); ok {
		t.Error("it is trusted")
	}
}

// TestWhatAnObjectTakes bounds the memory of one object of a member, with a
// status as Deployments have it.
func TestWhatAnObjectTakes(t *testing.T) {
	const count = 2000
	items := make([]string, count)
	for i := range items {
		name := fmt.Sprintf("web-%d", i)
		items[i] = configMapText(name, "4", `,"data":{"x":"`+strings.Repeat("x", 4096)+`"},"status":{"replicas":3,"readyReplicas":3,"conditions":[{"type":"Available","status":"True","message":"`+strings.Repeat("m", 200)+`"}]}`)
		if !json.Valid([]byte(items[i])) {
			t.Fatal(items[i])
		}
	}
	text := listText("5", items...)
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	config, _ := hostile(t, write(text), endless)
	m, err := r.Connect(members.Target{Name: "large", Config: config})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	eventually(t, "the list is seen", func() error {
		if _, presence := m.Read(corev1.SchemeGroupVersion.WithKind("ConfigMap"), types.NamespacedName{Namespace: "shop", Name: "web-7"}); presence != members.Present {
			return fmt.Errorf("presence %v", presence)
		}
		return nil
	})
	// Who has read the list may not have let go of it yet.
	eventually(t, "no more than that is kept", func() error {
		each := (int64(heap()) - int64(before)) / count
		t.Logf("%d bytes per object", each)
		if each > 3<<10 {
			return fmt.Errorf("%d bytes are kept of an object", each)
		}
		return nil
	})
}
