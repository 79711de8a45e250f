package members_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/policies/interpreter"
)

// half serves a member whose Secrets are applied at once, and whose ConfigMaps
// are not answered.
func half(t *testing.T) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	say := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, text)
		})
	}
	say("/api/v1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[`+
		`{"name":"configmaps","namespaced":true,"kind":"ConfigMap"},{"name":"secrets","namespaced":true,"kind":"Secret"}]}`)
	say("/api/v1/namespaces/kube-system", `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"ours"}}`)
	say("/api/v1/namespaces/shop/secrets/s", `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"shop","name":"s","uid":"u","resourceVersion":"7"}}`)
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	return &rest.Config{Host: serve(t, false, mux).URL}
}

func manifest(kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	obj.SetNamespace("shop")
	obj.SetName(name)
	return obj
}

// One kind that a member does not answer for keeps neither the member's other
// kinds nor its trust, and who asks for it in great numbers is soon let go.
func TestAMemberThatAnswersInPart(t *testing.T) {
	const wait = 10 * time.Second // far more than the kinds that are served need
	r := start(t, members.New(members.Options{Interpreter: interpreter.Native(), RequestTimeout: wait}), &log{})
	m, err := r.Connect(members.Target{Name: "half", ID: "ours", Config: half(t)})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	const many = 40
	var asking sync.WaitGroup
	outcomes := make(chan error, many)
	for i := range many {
		asking.Go(func() {
			_, err := m.Apply(t.Context(), manifest("ConfigMap", fmt.Sprintf("c%d", i)))
			outcomes <- err
		})
	}
	for range 100 {
		if _, err := m.Apply(t.Context(), manifest("Secret", "s")); err != nil {
			t.Fatalf("another kind: %v", err)
		}
	}
	asking.Wait()
	close(outcomes)
	got := map[string]bool{}
	for err := range outcomes {
		switch {
		case errors.Is(err, members.ErrBusy):
			got["sent away"] = true
		case errors.Is(err, context.DeadlineExceeded):
			got["no answer"] = true
		default:
			t.Errorf("an error of another kind: %v", err)
		}
	}
	if diff := cmp.Diff(map[string]bool{"sent away": true, "no answer": true}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if _, ok := r.Get("half"); !ok {
		t.Error("the member is not trusted any more")
	}
	select {
	case <-m.Suspects():
	default:
		t.Error("nobody is told to look")
	}
}
