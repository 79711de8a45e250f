package member_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/flotilla-io/flotilla/controlplane/datadir"
	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
)

// childDir names the folder of the member that a process of this test binary runs instead of tests.
const childDir = "FLOTILLA_TEST_MEMBER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		opts := member.Options{Name: "child", DataDir: dir, Nodes: 1, Ready: func(at member.Endpoint) { fmt.Println(at) }}
		if err := member.Run(context.Background(), opts); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestWorkloads(t *testing.T) {
	m := membertest.Start(t, member.Options{Name: "east"})
	cases := map[string]func(*testing.T, kubernetes.Interface, string){
		"a deployment becomes ready, scales and vanishes": deploymentRuns,
		"an image that starts with fake/ is never pulled": imageIsMissing,
		"a fake image that is replaced becomes ready":     imageIsRepaired,
		"a pod whose node was not heard recovers":         podRecovers,
		"a stateful set gets its volumes, and frees them": volumesAreBound,
		"a job completes":                                   jobCompletes,
		"a daemon set has a pod on every node":              daemonsRun,
		"services and ingresses get their addresses":        addressesAreGiven,
		"tokens of service accounts are good":               tokensWork,
		"a namespace that is deleted takes its pods along":  namespaceVanishes,
		"an owner that is deleted takes what it owns along": ownedVanishes,
	}
	n := 0
	for name, run := range cases {
		n++
		namespace := fmt.Sprintf("case-%d", n)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			create(t, namespace, m.Client)
			run(t, m.Client, namespace)
		})
	}
}

// podRecovers calls pods not ready, as is done with those of a node that is silent.
func podRecovers(t *testing.T, client kubernetes.Interface, namespace string) {
	deployment(t, client, namespace, 2, "nginx:1")
	deploymentReady(t, client, namespace, 2)
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)
		if _, err := client.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the pods are ready again", func(ctx context.Context) (string, error) {
		now, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for _, pod := range now.Items {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodReady && (c.Status != corev1.ConditionTrue || !slices.ContainsFunc(pods.Items, func(before corev1.Pod) bool { return before.UID == pod.UID })) {
					return fmt.Sprintf("%s: %+v", pod.Name, c), nil
				}
			}
		}
		return "", nil
	})
}

func create(t *testing.T, namespace string, client kubernetes.Interface) {
	t.Helper()
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until the check passes; check says what is still missing.
func eventually(t testing.TB, what string, check func(context.Context) (missing string, err error)) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		missing, err := check(ctx)
		last = missing
		return missing == "", err
	})
	if err != nil {
		t.Fatalf("%s: %v; %s", what, err, last)
	}
}

func podTemplate(images ...string) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}}}
	for i, image := range images {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: image})
	}
	return template
}

func deployment(t testing.TB, client kubernetes.Interface, namespace string, replicas int32, images ...string) *appsv1.Deployment {
	t.Helper()
	d, err := client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: podTemplate(images...),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func deploymentReady(t testing.TB, client kubernetes.Interface, namespace string, replicas int32) {
	t.Helper()
	eventually(t, "deployment", func(ctx context.Context) (string, error) {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == replicas && d.Status.ReadyReplicas == replicas && d.Status.UpdatedReplicas == replicas {
			return "", nil
		}
		return fmt.Sprintf("%+v", d.Status), nil
	})
}

func pods(ctx context.Context, t *testing.T, client kubernetes.Interface, namespace string) []corev1.Pod {
	t.Helper()
	list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func deploymentRuns(t *testing.T, client kubernetes.Interface, namespace string) {
	deployment(t, client, namespace, 3, "nginx:1")
	deploymentReady(t, client, namespace, 3)
	addresses := map[string]bool{}
	for _, pod := range pods(t.Context(), t, client, namespace) {
		addresses[pod.Status.PodIP] = true
	}
	if len(addresses) != 3 || addresses[""] {
		t.Errorf("3 pods have the addresses %v", addresses)
	}
	for _, replicas := range []int32{5, 0} {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		if _, err := client.AppsV1().Deployments(namespace).Patch(t.Context(), "x", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		deploymentReady(t, client, namespace, replicas)
	}
	eventually(t, "pods are gone", func(ctx context.Context) (string, error) {
		if left := len(pods(ctx, t, client, namespace)); left > 0 {
			return fmt.Sprintf("%d pods are left", left), nil
		}
		return "", nil
	})
}

func waitingForImage(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	eventually(t, "pod waits for its image", func(ctx context.Context) (string, error) {
		for _, pod := range pods(ctx, t, client, namespace) {
			for _, status := range pod.Status.ContainerStatuses {
				if status.State.Waiting != nil && status.State.Waiting.Reason == "ErrImagePull" && !status.Ready && pod.Status.Phase == corev1.PodPending {
					return "", nil
				}
			}
		}
		return "no such pod", nil
	})
}

func imageIsMissing(t *testing.T, client kubernetes.Interface, namespace string) {
	deployment(t, client, namespace, 1, "fake/nginx:1", "nginx:1")
	waitingForImage(t, client, namespace)
	d, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "x", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Status.ReadyReplicas != 0 {
		t.Errorf("%d replicas are ready without their image", d.Status.ReadyReplicas)
	}
}

func imageIsRepaired(t *testing.T, client kubernetes.Interface, namespace string) {
	deployment(t, client, namespace, 2, "fake/nginx:1")
	waitingForImage(t, client, namespace)
	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c0","image":"nginx:1"}]}}}}`)
	if _, err := client.AppsV1().Deployments(namespace).Patch(t.Context(), "x", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	deploymentReady(t, client, namespace, 2)
}

func volumesAreBound(t *testing.T, client kubernetes.Interface, namespace string) {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	_, err := client.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: appsv1.StatefulSetSpec{
			Replicas:             ptr.To[int32](2),
			ServiceName:          "x",
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template:             podTemplate("postgres:17"),
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "stateful set", func(ctx context.Context) (string, error) {
		s, err := client.AppsV1().StatefulSets(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil || s.Status.ReadyReplicas == 2 {
			return "", err
		}
		return fmt.Sprintf("%+v", s.Status), nil
	})
	bound, err := client.CoreV1().PersistentVolumeClaims(namespace).Get(t.Context(), "data-x-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.AppsV1().StatefulSets(namespace).Delete(t.Context(), "x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().PersistentVolumeClaims(namespace).Delete(t.Context(), bound.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "volume is gone", func(ctx context.Context) (string, error) {
		volume, err := client.CoreV1().PersistentVolumes().Get(ctx, bound.Spec.VolumeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return fmt.Sprintf("it is %s", volume.Status.Phase), err
	})
}

func jobCompletes(t *testing.T, client kubernetes.Interface, namespace string) {
	template := podTemplate("busybox:1")
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec:       batchv1.JobSpec{Completions: ptr.To[int32](3), Parallelism: ptr.To[int32](2), Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "job", func(ctx context.Context) (string, error) {
		j, err := client.BatchV1().Jobs(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil || (j.Status.Succeeded == 3 && j.Status.CompletionTime != nil) {
			return "", err
		}
		return fmt.Sprintf("%+v", j.Status), nil
	})
}

func daemonsRun(t *testing.T, client kubernetes.Interface, namespace string) {
	_, err := client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: podTemplate("agent:1"),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "daemon set", func(ctx context.Context) (string, error) {
		d, err := client.AppsV1().DaemonSets(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil || (d.Status.NumberReady == 3 && d.Status.DesiredNumberScheduled == 3) {
			return "", err
		}
		return fmt.Sprintf("%+v", d.Status), nil
	})
}

func addressesAreGiven(t *testing.T, client kubernetes.Interface, namespace string) {
	_, err := client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	backend := &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "x", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	_, err = client.NetworkingV1().Ingresses(namespace).Create(t.Context(), &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec:       networkingv1.IngressSpec{IngressClassName: ptr.To("nginx"), DefaultBackend: backend},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "addresses", func(ctx context.Context) (string, error) {
		s, err := client.CoreV1().Services(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		i, err := client.NetworkingV1().Ingresses(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if net.ParseIP(s.Spec.ClusterIP) != nil && len(s.Status.LoadBalancer.Ingress) == 1 && strings.HasPrefix(s.Status.LoadBalancer.Ingress[0].IP, "203.0.113.") &&
			len(i.Status.LoadBalancer.Ingress) == 1 && strings.HasPrefix(i.Status.LoadBalancer.Ingress[0].IP, "198.51.100.") {
			return "", nil
		}
		return fmt.Sprintf("service %q %+v, ingress %+v", s.Spec.ClusterIP, s.Status, i.Status), nil
	})
	if _, err := client.CoreV1().Services(namespace).Patch(t.Context(), "x", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "address is taken back", func(ctx context.Context) (string, error) {
		s, err := client.CoreV1().Services(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil || len(s.Status.LoadBalancer.Ingress) == 0 {
			return "", err
		}
		return fmt.Sprintf("%+v", s.Status), nil
	})
}

func tokensWork(t *testing.T, client kubernetes.Interface, namespace string) {
	var request *authenticationv1.TokenRequest
	eventually(t, "the account of the namespace gives a token", func(ctx context.Context) (string, error) {
		issued, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) {
			return "the namespace is new: its account is on its way", nil
		}
		request = issued
		return "", err
	})
	_, err := client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lasting []byte
	eventually(t, "token secret is filled", func(ctx context.Context) (string, error) {
		s, err := client.CoreV1().Secrets(namespace).Get(ctx, "x", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		lasting = s.Data[corev1.ServiceAccountTokenKey]
		if len(lasting) > 0 && len(s.Data[corev1.ServiceAccountRootCAKey]) > 0 {
			return "", nil
		}
		return fmt.Sprintf("it has %d fields", len(s.Data)), nil
	})
	for kind, token := range map[string]string{"requested": request.Status.Token, "lasting": string(lasting)} {
		review, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := "system:serviceaccount:" + namespace + ":default"; review.Status.User.Username != want {
			t.Errorf("the %s token is of %q, want %q (%s)", kind, review.Status.User.Username, want, review.Status.Error)
		}
	}
}

func namespaceVanishes(t *testing.T, client kubernetes.Interface, namespace string) {
	deployment(t, client, namespace, 2, "nginx:1")
	deploymentReady(t, client, namespace, 2)
	if err := client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "namespace is gone", func(ctx context.Context) (string, error) {
		n, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return fmt.Sprintf("%+v", n.Status), err
	})
}

func ownedVanishes(t *testing.T, client kubernetes.Interface, namespace string) {
	d := deployment(t, client, namespace, 1, "nginx:1")
	deploymentReady(t, client, namespace, 1)
	if err := client.AppsV1().Deployments(namespace).Delete(t.Context(), d.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pods are gone", func(ctx context.Context) (string, error) {
		if left := len(pods(ctx, t, client, namespace)); left > 0 {
			return fmt.Sprintf("%d pods are left", left), nil
		}
		return "", nil
	})
}

// facts are what makes a member itself.
type facts struct {
	uid       types.UID
	server    string
	clusterIP string
	podRange  string
}

func factsOf(t *testing.T, client kubernetes.Interface, server string) facts {
	t.Helper()
	system, err := client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kubernetesService, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) == 0 {
		t.Fatal("there are no nodes")
	}
	return facts{uid: system.UID, server: server, clusterIP: kubernetesService.Spec.ClusterIP, podRange: nodes.Items[0].Spec.PodCIDR}
}

func TestMembersDifferAndRestartTheSame(t *testing.T) {
	dirs := map[string]string{"north": t.TempDir(), "south": t.TempDir()}
	first := map[string]facts{}
	running := map[string]*membertest.Member{}
	for name, dir := range dirs {
		running[name] = membertest.Start(t, member.Options{Name: name, DataDir: dir, Nodes: 1})
		first[name] = factsOf(t, running[name].Client, running[name].Server)
		if _, err := os.Stat(filepath.Join(dir, "kubeconfig")); err != nil {
			t.Error(err)
		}
	}
	north, south := first["north"], first["south"]
	if north.uid == south.uid || north.server == south.server || north.clusterIP == south.clusterIP || north.podRange == south.podRange {
		t.Errorf("two members share what should be their own: %+v and %+v", north, south)
	}
	deployment(t, running["south"].Client, "default", 2, "nginx:1")
	deploymentReady(t, running["south"].Client, "default", 2)
	running["south"].Stop()
	running["north"].Stop()

	again := membertest.Start(t, member.Options{Name: "south", DataDir: dirs["south"], Nodes: 1})
	if got := factsOf(t, again.Client, again.Server); got != south {
		t.Errorf("after a restart the member is %+v, before it was %+v", got, south)
	}
	deploymentReady(t, again.Client, "default", 2)
}

// child is a member in a process of its own.
type child struct {
	cmd    *exec.Cmd
	client kubernetes.Interface
	server string
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.Remove(kubeconfig); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have been killed already
		_ = cmd.Wait()
	})
	var cfg *rest.Config
	eventually(t, "child is ready", func(context.Context) (string, error) {
		var err error
		if cfg, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &child{cmd: cmd, client: client, server: cfg.Host}
}

func TestKillAndResume(t *testing.T) {
	dir := t.TempDir()
	c := startChild(t, dir)
	before := factsOf(t, c.client, c.server)
	deployment(t, c.client, "default", 2, "nginx:1")
	deploymentReady(t, c.client, "default", 2)
	if err := member.Run(t.Context(), member.Options{Name: "child", DataDir: dir}); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("a second member on the folder says %v", err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // it says that it was killed

	c = startChild(t, dir)
	if after := factsOf(t, c.client, c.server); after != before {
		t.Errorf("after a kill the member is %+v, before it was %+v", after, before)
	}
	patch := []byte(`{"spec":{"replicas":4}}`)
	if _, err := c.client.AppsV1().Deployments("default").Patch(t.Context(), "x", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	deploymentReady(t, c.client, "default", 4)
}

func TestRunRefuses(t *testing.T) {
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	cases := map[string]struct {
		opts member.Options
		want error
	}{
		"a name that is no DNS label":       {member.Options{Name: "North_1"}, member.ErrInvalid},
		"no name":                           {member.Options{}, member.ErrInvalid},
		"a host name to bind to":            {member.Options{Name: "x", BindAddress: "localhost"}, member.ErrInvalid},
		"a port out of range":               {member.Options{Name: "x", SecurePort: 70000}, member.ErrInvalid},
		"a port that is taken":              {member.Options{Name: "x", SecurePort: busy.Addr().(*net.TCPAddr).Port}, syscall.EADDRINUSE},
		"a pod range that is none":          {member.Options{Name: "x", PodCIDR: "10.0.0.0"}, member.ErrInvalid},
		"a service range of another family": {member.Options{Name: "x", ServiceCIDR: "fd00::/108"}, member.ErrInvalid},
		"ranges that overlap":               {member.Options{Name: "x", PodCIDR: "10.1.0.0/16", ServiceCIDR: "10.1.8.0/24"}, member.ErrInvalid},
		"more nodes than the pod range has": {member.Options{Name: "x", PodCIDR: "10.1.0.0/24", Nodes: 3}, member.ErrInvalid},
		"less than no nodes":                {member.Options{Name: "x", Nodes: -1}, member.ErrInvalid},
		"a capacity that is not a quantity": {member.Options{Name: "x", Node: member.Capacity{Memory: "a lot"}}, member.ErrInvalid},
		"a capacity that is less than none": {member.Options{Name: "x", Node: member.Capacity{CPU: "-1"}}, member.ErrInvalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.opts.DataDir = t.TempDir()
			err := member.Run(t.Context(), c.opts)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line: %q", err)
			}
		})
	}
	t.Run("a folder of another member", func(t *testing.T) {
		dir := t.TempDir()
		if _, err := datadir.WriteFile(filepath.Join(dir, "member.json"), []byte(`{"name":"a","podCIDR":"10.1.0.0/19","serviceCIDR":"10.2.0.0/20"}`)); err != nil {
			t.Fatal(err)
		}
		if err := member.Run(t.Context(), member.Options{Name: "b", DataDir: dir}); !errors.Is(err, member.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	})
}
