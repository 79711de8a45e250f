package controlplane_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNothingIsReachedThroughTemplates: who edits a namespace may connect to Pods and
// Services there, wherever those say that they are. It leads nowhere, and so for
// administrators.
func TestNothingIsReachedThroughTemplates(t *testing.T) {
	env := shared.Env(t)
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	port := listener.Addr().(*net.TCPAddr).Port

	namespace := env.Namespace(t)
	tenant(t, env, namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"})
	as := func(who rest.ImpersonationConfig) rest.Interface {
		config := rest.CopyConfig(env.Config)
		config.Impersonate = who
		set, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		return set.CoreV1().RESTClient()
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "web"}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: namespace, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: int32(port)}}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	for _, obj := range []client.Object{pod, service, node} {
		remove(t, env.Hub, obj.DeepCopyObject().(client.Object))
		if err := env.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	at := ownAddress(t) // as a member might tell by a rule that hands on all of a status
	pod.Status.PodIPs = []corev1.PodIP{{IP: at}}
	pod.Status.PodIP = at
	node.Status = corev1.NodeStatus{
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}},
	}
	for _, obj := range []client.Object{pod, node} {
		if err := env.Hub.Status().Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	space := "/api/v1/namespaces/" + namespace
	anna, admin := as(rest.ImpersonationConfig{UserName: "tenant-" + namespace}), as(rest.ImpersonationConfig{UserName: "admin", Groups: []string{"system:masters"}})
	poll(t, "the tenant's rights", func() bool { return anna.Get().AbsPath(space+"/pods/web").Do(t.Context()).Error() == nil })
	for _, path := range []string{
		fmt.Sprintf("%s/pods/web:%d/proxy/", space, port), fmt.Sprintf("%s/pods/https:web:%d/proxy/a", space, port), space + "/pods/web/proxy",
		space + "/pods/web/exec", space + "/pods/web/attach", space + "/pods/web/portforward",
		fmt.Sprintf("%s/services/web:%d/proxy/", space, port), space + "/services/web/proxy",
		fmt.Sprintf("/api/v1/nodes/%s:%d/proxy/", namespace, port),
	} {
		for verb, ask := range map[string]func(rest.Interface) *rest.Request{"GET": rest.Interface.Get, "POST": rest.Interface.Post} {
			if err := ask(anna).AbsPath(path).Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
				t.Errorf("a tenant: %s %s = %v", verb, path, err)
			}
			if err := ask(admin).AbsPath(path).Do(t.Context()).Error(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "nothing runs on the control plane") {
				t.Errorf("an administrator: %s %s = %v", verb, path, err)
			}
		}
	}
	for what, obj := range map[string]client.Object{
		"endpoints":        &corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: at}}, Ports: []corev1.EndpointPort{{Port: int32(port)}}}}}, //nolint:staticcheck // what edit must not write
		"the Pod's status": pod,
	} {
		resource, name := "endpoints", ""
		if obj == client.Object(pod) {
			resource, name = "pods", "web"
		}
		request := anna.Post()
		if name != "" {
			request = anna.Put().Name(name).SubResource("status")
		}
		if err := request.Namespace(namespace).Resource(resource).Body(obj).Do(t.Context()).Error(); !apierrors.IsForbidden(err) {
			t.Errorf("a tenant writes %s: %v", what, err)
		}
	}
	if got := reached.Load(); got != 0 {
		t.Errorf("the server was reached %d times", got)
	}
}

// ownAddress is one of this machine at which the server would connect to a Pod, or
// one that nobody has.
func ownAddress(t *testing.T) string {
	t.Helper()
	found, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range found {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			return network.IP.String()
		}
	}
	return "192.0.2.1"
}
