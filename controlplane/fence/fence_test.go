package fence_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/fence"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

var key = fence.Key("")

func start(t *testing.T, intercept grpc.UnaryServerInterceptor) []string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fence-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	store, err := etcd.Start(t.Context(), etcd.Options{DataDir: dir, UnsafeNoFsync: true, Intercept: intercept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	return store.Endpoints()
}

// ways are those in which an API server reaches a store.
func ways(t *testing.T) map[string][]string {
	t.Helper()
	elsewhere, err := etcd.Connect(etcd.Address{Servers: start(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	relay, err := fence.NewRelay(t.Context(), elsewhere, t.TempDir(), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := relay.Close(); err != nil {
			t.Error(err)
		}
	})
	return map[string][]string{"a store of its own": start(t, fence.Interceptor(key)), "a store elsewhere": relay.Endpoints()}
}

func connect(t *testing.T, servers []string) *kubernetes.Client {
	t.Helper()
	client, err := kubernetes.New(clientv3.Config{Endpoints: servers, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// of is a context with what the API server says beside a request of an epoch.
func of(t *testing.T, epoch string) context.Context {
	t.Helper()
	var out context.Context
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", nil)
	if epoch != "" {
		req.Header.Set(tenure.Header, epoch)
	}
	fence.Carry(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { out = req.Context() })).ServeHTTP(httptest.NewRecorder(), req)
	return out
}

// TestAnEpochThatIsOverWritesNothing writes as the API server does.
func TestAnEpochThatIsOverWritesNothing(t *testing.T) {
	for name, servers := range ways(t) {
		t.Run(name, func(t *testing.T) {
			store := connect(t, servers)
			claim := func(before int64) int64 {
				put, err := store.OptimisticPut(t.Context(), key, fmt.Appendf(nil, "after %d", before), before, kubernetes.PutOptions{})
				if err != nil || !put.Succeeded {
					t.Fatalf("claim: %+v, %v", put, err)
				}
				return put.Revision
			}
			if _, err := store.OptimisticPut(of(t, "1"), "/before", []byte("x"), 0, kubernetes.PutOptions{}); err == nil {
				t.Error("a write of an epoch was accepted before there was one")
			}
			first := claim(0)
			old := of(t, fmt.Sprint(first))
			made, err := store.OptimisticPut(old, "/a", []byte("1"), 0, kubernetes.PutOptions{GetOnFailure: true})
			if err != nil || !made.Succeeded {
				t.Fatalf("a write of the present epoch: %+v, %v", made, err)
			}
			conflict, err := store.OptimisticPut(old, "/a", []byte("2"), 1, kubernetes.PutOptions{GetOnFailure: true})
			if err != nil || conflict.Succeeded || conflict.KV == nil || conflict.KV.ModRevision != made.Revision {
				t.Errorf("a conflict within the epoch: %+v, %v", conflict, err)
			}
			plain, err := store.OptimisticPut(old, "/a", []byte("2"), 1, kubernetes.PutOptions{})
			if err != nil || plain.Succeeded {
				t.Errorf("a conflict that reads nothing: %+v, %v", plain, err)
			}
			next := of(t, fmt.Sprint(claim(first)))
			writes := map[string]func() error{
				"make": func() error {
					_, err := store.OptimisticPut(old, "/b", []byte("1"), 0, kubernetes.PutOptions{})
					return err
				},
				"change": func() error {
					_, err := store.OptimisticPut(old, "/a", []byte("3"), made.Revision, kubernetes.PutOptions{GetOnFailure: true})
					return err
				},
				"change what is other": func() error {
					_, err := store.OptimisticPut(old, "/a", []byte("3"), 1, kubernetes.PutOptions{GetOnFailure: true})
					return err
				},
				"delete": func() error {
					_, err := store.OptimisticDelete(old, "/a", made.Revision, kubernetes.DeleteOptions{GetOnFailure: true})
					return err
				},
			}
			for what, write := range writes {
				if err := write(); err == nil || !strings.Contains(err.Error(), tenure.Refusal) {
					t.Errorf("%s in an epoch that is over: %v", what, err)
				}
			}
			if changed, err := store.OptimisticPut(next, "/a", []byte("next"), made.Revision, kubernetes.PutOptions{}); err != nil || !changed.Succeeded {
				t.Errorf("a write of the next epoch: %+v, %v", changed, err)
			}
			if users, err := store.OptimisticPut(of(t, ""), "/user", []byte("x"), 0, kubernetes.PutOptions{}); err != nil || !users.Succeeded {
				t.Errorf("a write without an epoch: %+v, %v", users, err)
			}
			all, err := store.Client.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortAscend))
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, kv := range all.Kvs {
				got[string(kv.Key)] = string(kv.Value)
			}
			if diff := cmp.Diff(map[string]string{key: fmt.Sprintf("after %d", first), "/a": "next", "/user": "x"}, got); diff != "" {
				t.Errorf("the store (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTheRelayHandsOnTheRest watches, and grants a lease, through a relay.
func TestTheRelayHandsOnTheRest(t *testing.T) {
	store := connect(t, ways(t)["a store elsewhere"])
	watch := store.Watch(clientv3.WithRequireLeader(t.Context()), "/w", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if first := <-watch; !first.Created {
		t.Fatalf("the watch begins with %+v", first)
	}
	lease, err := store.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("x", 1<<20)
	for i := range 6 { // more than gRPC takes by default
		if _, err := store.Put(t.Context(), fmt.Sprintf("/w/%d", i), large, clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
	for seen := 0; seen < 6; {
		answer := <-watch
		if err := answer.Err(); err != nil {
			t.Fatal(err)
		}
		seen += len(answer.Events)
	}
	all, err := store.Client.Get(t.Context(), "/w", clientv3.WithPrefix())
	if err != nil || all.Count != 6 {
		t.Errorf("%v keys, %v", all, err)
	}
	if _, err := store.Put(t.Context(), "", "x"); err == nil || !strings.Contains(err.Error(), "key is not provided") {
		t.Errorf("the store's own errors: %v", err)
	}
}

func TestCarry(t *testing.T) {
	cases := map[string]struct {
		epoch string
		code  int
		want  []string
	}{
		"a request without an epoch":        {"", http.StatusOK, nil},
		"one of an epoch":                   {"17", http.StatusOK, []string{"17"}},
		"one of what is no epoch":           {"x", http.StatusBadRequest, nil},
		"one of more than a number of ours": {"99999999999999999999", http.StatusBadRequest, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			handler := fence.Carry(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				md, _ := metadata.FromOutgoingContext(req.Context())
				got = md.Get("flotilla-epoch")
			}))
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/", nil)
			if c.epoch != "" {
				req.Header.Set(tenure.Header, c.epoch)
			}
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, req)
			if diff := cmp.Diff(c.want, got); diff != "" || answer.Code != c.code {
				t.Errorf("code %d, carried (-want +got):\n%s", answer.Code, diff)
			}
		})
	}
}
