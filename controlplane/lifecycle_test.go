package controlplane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/controlplane"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/setback"
)

func TestRestartWritesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var revision int64
	var pki map[string]string
	for _, start := range []string{"first", "second"} {
		t.Run(start, func(t *testing.T) {
			env, err := servertest.StartIn(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := env.Stop(); err != nil {
					t.Error(err)
				}
			}()
			now, files := env.QuietRevision(t), contents(t, filepath.Join(dir, "pki"))
			if start == "first" {
				revision, pki = now, files
				refusesSecond(t, dir)
				return
			}
			if now != revision {
				t.Errorf("the restart wrote %d times: %v", now-revision, env.Written(t, revision))
			}
			for name, content := range pki {
				if files[name] != content {
					t.Errorf("%s changed", name)
				}
			}
		})
	}
}

// TestStopWhileSomebodyWatches ends a control plane that a client, connected
// from outside, watches: as loops that run apart do, and kubectl get -w.
func TestStopWhileSomebodyWatches(t *testing.T) {
	env, err := servertest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := outside.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	stopped := make(chan error, 1)
	go func() { stopped <- env.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(40 * time.Second): // upstream's own timeout is a minute
		t.Error("the control plane waits for the watch to end")
		watch.Stop()
		<-stopped
	}
}

// refusesSecond starts another control plane on the folder of a running one.
func refusesSecond(t *testing.T, dir string) {
	t.Helper()
	_, err := controlplane.New(t.Context(), controlplane.Options{DataDir: dir})
	if !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("second control plane on one folder: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	cases := map[string]struct {
		opts controlplane.Options
		want string
	}{
		"no folder":               {controlplane.Options{}, "no data directory"},
		"a folder that is a file": {controlplane.Options{DataDir: "main_test.go"}, "not a directory"},
		"an address that is none": {controlplane.Options{DataDir: t.TempDir(), BindAddress: "here", UnsafeNoFsync: true}, `bind address "here" is not an IP address`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plane, err := controlplane.New(t.Context(), tc.opts)
			if err == nil {
				plane.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error = %v, want one line with %q", err, tc.want)
			}
		})
	}
}

// TestStoreElsewhere runs a control plane on a store that it does not own, and
// loops on the control plane.
func TestStoreElsewhere(t *testing.T) {
	dir, err := os.MkdirTemp("", "store-") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	store, err := etcd.Start(t.Context(), etcd.Options{DataDir: filepath.Join(dir, "etcd"), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	plane, err := controlplane.New(t.Context(), controlplane.Options{
		DataDir: filepath.Join(dir, "data"), Etcd: apiserver.Etcd{Servers: store.Endpoints(), Prefix: "/elsewhere"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	wrote := false
	err = plane.Run(ctx, func(ctx context.Context, config *rest.Config) error {
		hub, err := client.New(config, client.Options{})
		if err != nil {
			return err
		}
		stop()
		<-ctx.Done()
		// The server outlives its loops by their last writes.
		last := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "last"}}
		if err := hub.Create(context.WithoutCancel(ctx), last); err != nil {
			t.Errorf("last write of a loop: %v", err)
		}
		wrote = true
		return nil
	})
	if err != nil || !wrote {
		t.Errorf("run: %v, loop ran: %v", err, wrote)
	}
	keys, err := store.Written(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(keys, "/elsewhere/namespaces/last") {
		t.Errorf("the store has %d keys, none of the loop's", len(keys))
	}
	if again, err := datadir.Open(filepath.Join(dir, "data")); err != nil {
		t.Errorf("the folder is still held: %v", err)
	} else {
		again.Close()
	}
}

func TestAdministrator(t *testing.T) {
	env := shared.Env(t)
	config, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"default", "karmada-system", "karmada-cluster"} {
		if _, err := hub.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if opened, err := setback.Opened(config)(t.Context()); err != nil || opened == 0 {
		t.Errorf("the loops began to work on the store at %d, %v", opened, err)
	}
	nobody := rest.AnonymousClientConfig(config)
	nobody.BearerToken = "x"
	if _, err := setback.Opened(nobody)(t.Context()); !apierrors.IsUnauthorized(err) {
		t.Errorf("who has no credentials is told when they began: %v", err)
	}
	answer, err := hub.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").Do(t.Context()).Raw()
	if err != nil || !strings.Contains(string(answer), "[+]flotilla ok") {
		t.Errorf("readyz: %v\n%s", err, answer)
	}
	for _, want := range []string{"clusters", "propagationpolicies pp", "works wk", "deployments deploy"} {
		poll(t, "discovery has "+want, func() bool { return discoveredNames(t, config)[want] })
	}
}

func discoveredNames(t *testing.T, config *rest.Config) map[string]bool {
	t.Helper()
	hub, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := hub.ServerPreferredResources()
	if err != nil {
		t.Logf("discovery is not whole yet: %v", err)
	}
	names := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			names[strings.TrimSpace(r.Name+" "+strings.Join(r.ShortNames, " "))] = true
		}
	}
	return names
}

// TestAggregatedRoles shows that who may view, edit or administer a namespace
// may do so with our kinds.
func TestAggregatedRoles(t *testing.T) {
	env := shared.Env(t)
	hub, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]map[string]string{
		"view":  {"propagationpolicies": "list", "works": "get"},
		"edit":  {"propagationpolicies": "create", "overridepolicies": "update"},
		"admin": {"propagationpolicies": "create", "federatedresourcequotas": "create"},
	} {
		for resource, verb := range want {
			poll(t, role+" may "+verb+" "+resource, func() bool {
				got, err := hub.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
				if err != nil {
					return false
				}
				for _, rule := range got.Rules {
					if slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb) {
						return true
					}
				}
				return false
			})
		}
	}
}

// TestHousekeeping shows that what hangs on an object goes with it, and that a
// token Secret is filled.
func TestHousekeeping(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	hub, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	poll(t, "service account", func() bool {
		_, err := hub.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	if _, err := hub.CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	poll(t, "token", func() bool {
		got, err := hub.CoreV1().Secrets(namespace).Get(t.Context(), "token", metav1.GetOptions{})
		return err == nil && len(got.Data[corev1.ServiceAccountTokenKey]) > 0 && len(got.Data[corev1.ServiceAccountRootCAKey]) > 0
	})

	owner := object(t, overridePolicy)
	owner.SetNamespace(namespace)
	if err := env.Hub.Create(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owned := object(t, work)
	owned.SetNamespace(namespace)
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
	if err := env.Hub.Create(t.Context(), owned); err != nil {
		t.Fatal(err)
	}
	if err := env.Hub.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	poll(t, "garbage collection", func() bool {
		return apierrors.IsNotFound(env.Hub.Get(t.Context(), client.ObjectKeyFromObject(owned), owned))
	})
}

// TestTemplatesAreStored shows that a template makes no pods and is left as it
// was written.
func TestTemplatesAreStored(t *testing.T) {
	env := shared.Env(t)
	namespace := env.Namespace(t)
	pod := object(t, `
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  priorityClassName: only-in-members
  serviceAccountName: only-in-members
  runtimeClassName: only-in-members
  containers: [{name: c, image: i, securityContext: {privileged: true}}]
`)
	pod.SetNamespace(namespace)
	claim := object(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: p}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`)
	claim.SetNamespace(namespace)
	for _, obj := range []client.Object{pod, claim} {
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if got := at(pod.Object, "spec.tolerations"); got != nil {
		t.Errorf("tolerations were added: %v", got)
	}
	if got := at(pod.Object, "spec.volumes"); got != nil {
		t.Errorf("volumes were added: %v", got)
	}
	if len(claim.GetFinalizers()) > 0 {
		t.Errorf("finalizers were added: %v", claim.GetFinalizers())
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name()] = string(content)
	}
	return out
}
