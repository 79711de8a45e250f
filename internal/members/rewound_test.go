package members_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// TestAMemberThatWasSetBackUnseen: a hub that stood still while its member was set back,
// and had grown past what its watches had seen, finds it with the next look.
func TestAMemberThatWasSetBackUnseen(t *testing.T) {
	const claim = `{"hub":"h","cluster":"first","mark":{"run":2,"id":"b","revision":%d}}`
	for name, later := range map[string]struct {
		version string // of its namespace kube-system, which was 90
		mark    int    // which was 70
		gone    bool   // what it has lost is found
	}{
		"its versions have gone back":         {"80", 70, true},
		"they have grown past what was seen":  {"190", 60, true},
		"it goes on, and nothing was missed":  {"190", 70, false},
		"it goes on, and has a mark of later": {"190", 75, false},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			version, mark, list := "90", 70, listText("100", configMapText("one", "40", ""), configMapText("two", "50", ""))
			lists := 0
			mux := http.NewServeMux()
			say := func(w http.ResponseWriter, text string) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, text)
			}
			mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
				say(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
			})
			mux.HandleFunc("/api/v1/namespaces/kube-system", func(w http.ResponseWriter, _ *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				say(w, fmt.Sprintf(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ours","resourceVersion":%q,"annotations":{"cluster.flotilla.io/claim":%q}}}`,
					version, fmt.Sprintf(claim, mark)))
			})
			mux.HandleFunc("/api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
				switch query := r.URL.Query(); {
				case query.Get("sendInitialEvents") == "true":
					w.WriteHeader(http.StatusUnprocessableEntity)
					say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
				case query.Get("watch") != "true":
					mu.Lock()
					defer mu.Unlock()
					lists++
					say(w, list)
				default: // it shows nothing, as one that has grown past
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				}
			})
			server := httptest.NewTLSServer(mux)
			defer server.Close()
			defer server.CloseClientConnections()
			r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), &log{})
			cluster, secret := (&edge{server: server}).registered("first")
			m := connectTo(t, r, cluster, secret)
			two := types.NamespacedName{Namespace: "shop", Name: "two"}
			is := func(want members.Presence) {
				t.Helper()
				eventually(t, "what is known of the member is true", func() error {
					if _, presence := m.Read(configMap, two); presence != want {
						return fmt.Errorf("presence %v, want %v", presence, want)
					}
					return nil
				})
			}
			if err := m.Prove(t.Context()); err != nil {
				t.Fatal(err)
			}
			is(members.Present)
			mu.Lock()
			version, mark, list = later.version, later.mark, listText("200", configMapText("one", "40", ""))
			mu.Unlock()
			for range 2 {
				if err := m.Prove(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !later.gone {
				is(members.Present)
				return
			}
			is(members.Absent)
			mu.Lock()
			defer mu.Unlock()
			if lists != 2 {
				t.Errorf("the kind was listed %d times, want 2", lists)
			}
		})
	}
}

// TestWhatGoesWhileAMemberIsAway: an object that somebody removes from a member that is
// cut off is told of when the watch begins anew, which never had it.
func TestWhatGoesWhileAMemberIsAway(t *testing.T) {
	var mu sync.Mutex
	cut, list := false, listText("100", configMapText("one", "40", ""), configMapText("two", "50", ""))
	anew, end := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(anew) })
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, text)
	}
	mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
		say(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
	})
	mux.HandleFunc("/api/v1/namespaces/kube-system", func(w http.ResponseWriter, _ *http.Request) {
		say(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ours","resourceVersion":"9"}}`)
	})
	mux.HandleFunc("/api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		away, all, over := cut, list, end
		mu.Unlock()
		switch query := r.URL.Query(); {
		case away && query.Get("watch") != "true" && query.Get("resourceVersion") == "0":
			begun() // one that has seen nothing asks
			fallthrough
		case away:
			w.WriteHeader(http.StatusServiceUnavailable)
			say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","code":503}`)
		case query.Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "true":
			say(w, all)
		default:
			w.(http.Flusher).Flush()
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	defer server.CloseClientConnections()
	told := &log{}
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), told)
	cluster, secret := (&edge{server: server}).registered("first")
	m := connectTo(t, r, cluster, secret)
	two := types.NamespacedName{Namespace: "shop", Name: "two"}
	is := func(want members.Presence) {
		t.Helper()
		eventually(t, "what is known of the member is true", func() error {
			if _, presence := m.Read(configMap, two); presence != want {
				return fmt.Errorf("presence %v, want %v", presence, want)
			}
			return nil
		})
	}
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	is(members.Present)

	mu.Lock()
	cut, list = true, listText("120", configMapText("one", "40", ""))
	mu.Unlock()
	close(end)
	is(members.Unknown)
	m.Doubt()
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-anew
	before := told.count("changed two")
	mu.Lock()
	cut, end = false, make(chan struct{})
	mu.Unlock()
	is(members.Absent)
	eventually(t, "what is gone is told", func() error {
		if now := told.count("changed two"); now != before+1 {
			return fmt.Errorf("it was told %d times, before that %d", now, before)
		}
		return nil
	})
}

// TestAMemberThatIsReachedElsewhere: nobody has to ask for an object for it to be seen
// where a member has another address now.
func TestAMemberThatIsReachedElsewhere(t *testing.T) {
	serve := func(list string) *httptest.Server {
		mux := http.NewServeMux()
		say := func(w http.ResponseWriter, text string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, text)
		}
		mux.HandleFunc("/api/v1", func(w http.ResponseWriter, _ *http.Request) {
			say(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[{"name":"configmaps","namespaced":true,"kind":"ConfigMap"}]}`)
		})
		mux.HandleFunc("/api/v1/namespaces/kube-system", func(w http.ResponseWriter, _ *http.Request) {
			say(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ours","resourceVersion":"9"}}`)
		})
		mux.HandleFunc("/api/v1/configmaps", func(w http.ResponseWriter, r *http.Request) {
			switch query := r.URL.Query(); {
			case query.Get("sendInitialEvents") == "true":
				w.WriteHeader(http.StatusUnprocessableEntity)
				say(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			case query.Get("watch") != "true":
				say(w, list)
			default:
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		})
		server := httptest.NewTLSServer(mux)
		t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
		return server
	}
	told := &log{}
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native()}), told)
	connected := func(server *httptest.Server) *members.Member {
		t.Helper()
		cluster, secret := (&edge{server: server}).registered("first")
		m := connectTo(t, r, cluster, secret)
		if err := m.Prove(t.Context()); err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := connected(serve(listText("100", configMapText("one", "40", ""), configMapText("two", "50", ""))))
	eventually(t, "the member is seen", func() error {
		if _, presence := m.Read(configMap, types.NamespacedName{Namespace: "shop", Name: "two"}); presence != members.Present {
			return fmt.Errorf("presence %v", presence)
		}
		return nil
	})
	one, two := told.count("changed one"), told.count("changed two")
	connected(serve(listText("120", configMapText("one", "110", ""))))
	eventually(t, "what has changed and what is gone is told", func() error {
		if o, g := told.count("changed one"), told.count("changed two"); o != one+1 || g != two+1 {
			return fmt.Errorf("told %d and %d times, before that %d and %d", o, g, one, two)
		}
		return nil
	})
}
