package controlplane_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/crds"
	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/internal/tenure"
)

// storeOfAll is a store that several control planes may use, and a folder for them.
func storeOfAll(t *testing.T) (servers []string, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "all-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	store, err := etcd.Start(t.Context(), etcd.Options{DataDir: filepath.Join(dir, "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	return store.Endpoints(), dir
}

// A replica is one of several control planes on a store.
type replica struct {
	plane *controlplane.ControlPlane
	stop  func()
}

// runReplica runs a control plane in dir/name, on its own store if there are no
// servers.
func runReplica(t *testing.T, servers []string, dir, name string) replica {
	t.Helper()
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.New(t.Context(), controlplane.Options{
		DataDir: filepath.Join(dir, name), Definitions: definitions, UnsafeNoFsync: true,
		Etcd: apiserver.Etcd{Servers: servers}, SealKeyFile: filepath.Join(dir, "seal.key"),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- plane.Run(ctx) }()
	stopped := false
	r := replica{plane: plane, stop: func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-done; err != nil {
			t.Error(err)
		}
	}}
	t.Cleanup(r.stop)
	select {
	case <-plane.Ready():
	case err := <-done:
		done <- err
		t.Fatalf("replica %s ended: %v", name, err)
	}
	return r
}

// as returns a client of this replica with the administrator's kubeconfig of another.
func (r replica) as(t *testing.T, other replica) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags(r.plane.URL(), other.plane.KubeconfigFile())
	if err != nil {
		t.Fatal(err)
	}
	return clientOf(t, config)
}

func clientOf(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// published is the address that is published to clusters.
func (r replica) published(t *testing.T) string {
	t.Helper()
	document, err := clientOf(t, r.plane.Config()).CoreV1().ConfigMaps("kube-public").Get(t.Context(), "cluster-info", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load([]byte(document.Data["kubeconfig"]))
	if err != nil {
		t.Fatal(err)
	}
	return config.Clusters[""].Server
}

// TestReplicasTrustEachOther runs three control planes on one store, one of which has
// been the only one, on its own store, until then.
func TestReplicasTrustEachOther(t *testing.T) {
	servers, dir := storeOfAll(t)
	alone := runReplica(t, nil, dir, "a")
	alone.stop()
	ca := fileOf(t, filepath.Join(dir, "a/pki/ca.crt"))

	a := runReplica(t, servers, dir, "a")
	b := runReplica(t, servers, dir, "b")
	for name, pair := range map[string][2]replica{"the first knows the second's administrator": {a, b}, "the second the first's": {b, a}} {
		if _, err := pair[0].as(t, pair[1]).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	issued, err := clientOf(t, a.plane.Config()).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: issued.Status.Token}}
	review, err = clientOf(t, b.plane.Config()).AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		t.Errorf("the second does not know a token of the first: %v, %+v", err, review.Status)
	}
	if now := fileOf(t, filepath.Join(dir, "b/pki/ca.crt")); now != ca {
		t.Error("the authority of the control plane that was the only one is not that of all")
	}
	if where := b.published(t); where != a.plane.URL() {
		t.Errorf("clusters are told %s, want the first's %s", where, a.plane.URL())
	}
	a.stop()
	c := runReplica(t, servers, dir, "c")
	if where := c.published(t); where != c.plane.URL() {
		t.Errorf("the first is gone, and clusters are told %s, want %s", where, c.plane.URL())
	}
	if _, err := c.as(t, a).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Errorf("the third does not know the administrator of the first, which is gone: %v", err)
	}
}

// TestReplicaWithoutTheKey refuses a second control plane that was not given the key
// of the first, and changes nothing.
func TestReplicaWithoutTheKey(t *testing.T) {
	servers, dir := storeOfAll(t)
	first, err := controlplane.New(t.Context(), controlplane.Options{DataDir: filepath.Join(dir, "a"), Etcd: apiserver.Etcd{Servers: servers}})
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	second, err := controlplane.New(t.Context(), controlplane.Options{DataDir: filepath.Join(dir, "b"), Etcd: apiserver.Etcd{Servers: servers}})
	if err == nil {
		second.Close()
		t.Fatal("it started")
	}
	if want := "there is no file " + filepath.Join(dir, "b/seal.key") + ": copy it"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "b/pki")); err == nil {
		t.Error("it made an authority of its own")
	}
}

func fileOf(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// leader is whoever has got the lease, with a client as its loops have one.
func (r replica) leader(t *testing.T) client.Client {
	t.Helper()
	term := tenure.New(clock.RealClock{})
	lock, err := tenure.NewLock(r.plane.Config(), term)
	if err != nil {
		t.Fatal(err)
	}
	record := resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity(), LeaseDurationSeconds: 15}
	take := lock.Update
	if _, _, err := lock.Get(t.Context()); apierrors.IsNotFound(err) {
		take = lock.Create
	}
	if err := take(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(r.plane.Config())
	config.Wrap(term.Hub)
	hub, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return hub
}

// TestAnOldLeaderWritesNothingThroughItsOwnServer has the leader of one replica go on
// after that of another has begun: objects of the API server, of definitions, and of
// Flotilla's own server.
func TestAnOldLeaderWritesNothingThroughItsOwnServer(t *testing.T) {
	servers, dir := storeOfAll(t)
	a, b := runReplica(t, servers, dir, "a"), runReplica(t, servers, dir, "b")
	kinds := func(name string) []client.Object {
		meta := metav1.ObjectMeta{Name: name, Namespace: "default"}
		return []client.Object{
			&corev1.ConfigMap{ObjectMeta: meta},
			&workv1alpha1.Work{ObjectMeta: meta},
			&policyv1alpha1.PropagationPolicy{ObjectMeta: meta, Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}},
			}},
		}
	}
	old := a.leader(t)
	for _, obj := range kinds("first") {
		if err := old.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	next := b.leader(t)
	for i, obj := range kinds("second") {
		if err := next.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		// An old leader learns from its first refusal: each kind is refused to one that has not.
		again := kinds("late")[i]
		stopped := a.leader(t)
		next = b.leader(t)
		if err := stopped.Create(t.Context(), again); !errors.Is(err, tenure.ErrOver) {
			t.Errorf("%T of an old leader: %v", again, err)
		}
		if err := next.Get(t.Context(), client.ObjectKeyFromObject(again), again); !apierrors.IsNotFound(err) {
			t.Errorf("%T of an old leader is there: %v", again, err)
		}
	}
	first := kinds("first")
	if err := old.Delete(t.Context(), first[0]); !errors.Is(err, tenure.ErrOver) {
		t.Errorf("a deletion of an old leader: %v", err)
	}
	if err := next.Delete(t.Context(), first[0]); err != nil {
		t.Errorf("a deletion of the leader: %v", err)
	}
}

// Whoever starts the first replica has to copy the key, and is told where it is, once.
// TestAReplicaWhoseClockIsWrong starts a replica beside one that leads, whose own clock is
// so far ahead that it finds the authorities of both due.
func TestAReplicaWhoseClockIsWrong(t *testing.T) {
	servers, dir := storeOfAll(t)
	first := runReplica(t, servers, dir, "a")
	bundle := func(name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name, "pki", "ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	before := bundle("a")
	stop := first.leads(t)
	defer stop()
	plane, err := controlplane.New(t.Context(), controlplane.Options{
		DataDir: filepath.Join(dir, "b"), UnsafeNoFsync: true, Clock: testingclock.NewFakeClock(time.Now().AddDate(8, 0, 0)),
		Etcd: apiserver.Etcd{Servers: servers}, SealKeyFile: filepath.Join(dir, "seal.key"),
	})
	if err == nil {
		plane.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "set the clock that is wrong") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error = %v, want one line about the clocks", err)
	}
	stop()
	first.stop()
	runReplica(t, servers, dir, "a")
	if bundle("a") != before {
		t.Error("the authority of all was renewed")
	}
}

// leads renews the Lease of who leads, through this replica, until stop.
func (r replica) leads(t *testing.T) (stop func()) {
	t.Helper()
	leases := clientOf(t, r.plane.Config()).CoordinationV1().Leases(tenure.Namespace)
	lease, err := leases.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: tenure.LeaseName}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			now := metav1.NowMicro()
			lease.Spec.RenewTime = &now
			if renewed, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err == nil {
				lease = renewed
			} else if ctx.Err() == nil {
				t.Error(err)
			}
		}, 100*time.Millisecond)
	}()
	return func() { cancel(); <-done }
}

func TestTheFirstReplicaSaysWhereTheKeyIs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a store")
	}
	servers, dir := storeOfAll(t)
	key := filepath.Join(dir, "seal.key")
	for _, start := range []struct {
		name    string
		reports bool
	}{{"first", true}, {"second", false}} {
		var log bytes.Buffer
		// Kubernetes' own servers log through the context, and report faults alone.
		plane, err := controlplane.New(logr.NewContext(t.Context(), logr.Discard()), controlplane.Options{
			DataDir: filepath.Join(dir, start.name), UnsafeNoFsync: true, Log: logr.FromSlogHandler(slog.NewTextHandler(&log, nil)),
			Etcd: apiserver.Etcd{Servers: servers}, SealKeyFile: key,
		})
		if err != nil {
			t.Fatal(err)
		}
		plane.Close()
		if reports := strings.Contains(log.String(), "sealKeyFile="+key); reports != start.reports {
			t.Errorf("the %s start says where the key is: %t\n%s", start.name, reports, log.String())
		}
	}
}
