package housekeeping_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/etcd"
	"github.com/flotilla-io/flotilla/controlplane/housekeeping"
	"github.com/flotilla-io/flotilla/controlplane/pki"
)

// A hub is a plain API server with the housekeeping of a control plane.
type hub struct {
	config *rest.Config
	client kubernetes.Interface
	pki    *pki.Store
}

// newServer runs an API server, without any controller, until the test ends.
func newServer(t *testing.T) *hub {
	t.Helper()
	dir, err := os.MkdirTemp("", "housekeeping-") // shorter than the test's own: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	store, err := etcd.Start(t.Context(), etcd.Options{DataDir: dir + "/etcd", UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	keys, err := pki.Open(dir+"/pki", clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(t.Context(), apiserver.Options{DataDir: dir + "/apiserver", PKI: keys, Etcd: apiserver.Etcd{Servers: store.Endpoints()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := server.WaitServing(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := &hub{config: server.LoopbackConfig(), pki: keys}
	if h.client, err = kubernetes.NewForConfig(h.config); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hub) options() housekeeping.ControllerOptions {
	return housekeeping.ControllerOptions{
		Config:                h.config,
		ServiceAccountKeyFile: h.pki.ServiceAccountKeyFile(),
		RootCAFile:            h.pki.CAFile(),
		SigningCertFile:       h.pki.SignerCAFile(),
		SigningKeyFile:        h.pki.CAKeyFile(),
	}
}

// keep runs the housekeeping until the test ends, and wants it to end in time then.
func (h *hub) keep(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- housekeeping.RunControllers(ctx, h.options()) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("housekeeping: %v", err)
		}
	})
}

func eventually(t *testing.T, what string, check func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestHub(t *testing.T) {
	h := newServer(t)
	h.keep(t)
	cases := map[string]func(*testing.T, *hub, string){
		"a namespace has its account and the authority":      accountIsMade,
		"a token secret is filled":                           tokenIsMade,
		"a namespace that is deleted takes its things along": namespaceVanishes,
		"a role is made of others":                           rolesAddUp,
		"an object of a new kind goes with its owner":        newKindIsCollected,
		"a job expires, unless it is of a Kustomization":     jobsExpire,
	}
	n := 0
	for name, run := range cases {
		n++
		namespace := fmt.Sprintf("case-%d", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := h.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			run(t, h, namespace)
		})
	}
}

// TestTwoInProcess stands for a hub and its members in one test binary.
func TestTwoInProcess(t *testing.T) {
	for _, h := range []*hub{newServer(t), newServer(t)} {
		h.keep(t)
		accountIsMade(t, h, metav1.NamespaceDefault)
	}
}

func accountIsMade(t *testing.T, h *hub, namespace string) {
	eventually(t, "service account", func(ctx context.Context) (bool, error) {
		_, err := h.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return found(err)
	})
	eventually(t, "authority", func(ctx context.Context) (bool, error) {
		_, err := h.client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return found(err)
	})
}

// jobsExpire: a Kustomization would bring back, and run again, what is deleted.
func jobsExpire(t *testing.T, h *hub, namespace string) {
	jobs := h.client.BatchV1().Jobs(namespace)
	for _, name := range []string{"of-git", "by-hand"} {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{
				TTLSecondsAfterFinished: ptr.To(int32(1)),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}},
				}},
			},
		}
		if name == "of-git" {
			job.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
		}
		made, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := metav1.Now()
		made.Status = batchv1.JobStatus{StartTime: &at, CompletionTime: &at, Succeeded: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: at},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: at},
		}}
		if _, err := jobs.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the one by hand is gone", func(ctx context.Context) (bool, error) {
		job, err := jobs.Get(ctx, "by-hand", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return err == nil && job.DeletionTimestamp != nil, err
	})
	if job, err := jobs.Get(t.Context(), "of-git", metav1.GetOptions{}); err != nil || job.DeletionTimestamp != nil {
		t.Errorf("the Job of a Kustomization has expired: %v", err)
	}
}

func found(err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func tokenIsMade(t *testing.T, h *hub, namespace string) {
	accountIsMade(t, h, namespace)
	_, err := h.client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "token", func(ctx context.Context) (bool, error) {
		s, err := h.client.CoreV1().Secrets(namespace).Get(ctx, "x", metav1.GetOptions{})
		return err == nil && len(s.Data[corev1.ServiceAccountTokenKey]) > 0, err
	})
}

func namespaceVanishes(t *testing.T, h *hub, namespace string) {
	if _, err := h.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := h.client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "namespace is gone", func(ctx context.Context) (bool, error) {
		_, err := h.client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		there, err := found(err)
		return !there, err
	})
}

func rolesAddUp(t *testing.T, h *hub, namespace string) {
	label := map[string]string{"adds-up-to": namespace}
	rule := rbacv1.PolicyRule{APIGroups: []string{"example.io"}, Resources: []string{"things"}, Verbs: []string{"get"}}
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-part", Labels: label}, Rules: []rbacv1.PolicyRule{rule}},
		{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-sum"}, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}}}},
	} {
		if _, err := h.client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "role has the rule of its part", func(ctx context.Context) (bool, error) {
		role, err := h.client.RbacV1().ClusterRoles().Get(ctx, namespace+"-sum", metav1.GetOptions{})
		return err == nil && len(role.Rules) == 1, err
	})
}

// newKindIsCollected defines a kind while the collector runs. That the collector does not wait for its next look
// at all kinds is for TestKindsAreFollowed to say.
func newKindIsCollected(t *testing.T, h *hub, namespace string) {
	defineThings(t, h)
	client, err := dynamic.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}
	things := client.Resource(schema.GroupVersionResource{Group: "example.io", Version: "v1", Resource: "things"}).Namespace(namespace)
	owner, err := h.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	thing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.io/v1", "kind": "Thing"}}
	thing.SetName("owned")
	thing.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}})
	eventually(t, "kind is served", func(ctx context.Context) (bool, error) {
		_, err := things.Create(ctx, thing, metav1.CreateOptions{})
		return found(err)
	})
	begin := time.Now()
	if err := h.client.CoreV1().ConfigMaps(namespace).Delete(t.Context(), owner.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "thing is gone", func(ctx context.Context) (bool, error) {
		_, err := things.Get(ctx, "owned", metav1.GetOptions{})
		there, err := found(err)
		return !there, err
	})
	t.Logf("it took %s to collect an object of a new kind", time.Since(begin).Round(time.Millisecond))
}

func defineThings(t *testing.T, h *hub) {
	t.Helper()
	client, err := apiextensions.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.io",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHubControllersMakeNoWorkloads(t *testing.T) {
	for _, name := range housekeeping.HubControllers() {
		for _, part := range []string{"deployment", "replica", "daemon", "stateful", "job", "endpoint", "service-", "node", "pod", "volume"} {
			if strings.Contains(name, part) {
				t.Errorf("%s runs on the hub", name)
			}
		}
	}
}

func TestRunControllersRefuses(t *testing.T) {
	h := newServer(t)
	cases := map[string]func(*housekeeping.ControllerOptions){
		"an unknown controller":        func(o *housekeeping.ControllerOptions) { o.Controllers = []string{"no-such-controller"} },
		"a key that is missing":        func(o *housekeeping.ControllerOptions) { o.ServiceAccountKeyFile = "/nonexistent/key" },
		"an authority that is missing": func(o *housekeeping.ControllerOptions) { o.RootCAFile = "/nonexistent/ca" },
		"a pod range that is none": func(o *housekeeping.ControllerOptions) {
			o.Controllers = housekeeping.MemberControllers()
			o.Nodes = &housekeeping.NodeOptions{PodCIDR: "everything", NodeMaskSize: 24, MonitorGracePeriod: time.Minute}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			opts := h.options()
			change(&opts)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			if err := housekeeping.RunControllers(ctx, opts); err == nil || errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
				t.Errorf("got %v before %v", err, ctx.Err())
			}
		})
	}
}
