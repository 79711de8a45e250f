package registration_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"
	"github.com/flotilla-io/flotilla/cmd/flotilla/registration"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/reconciler/agents/agentstest"
)

var golden = commandtest.Golden("testdata")

// hubs lends the tests of this package control planes.
var hubs servertest.Pool

func TestMain(m *testing.M) { os.Exit(hubs.Main(m)) }

// call runs the command line and returns all that it reported.
func call(t *testing.T, args ...string) commandtest.Result {
	t.Helper()
	return commandtest.Run(t.Context(), commandtest.Root(registration.Commands), "", args...)
}

// script runs calls, and writes down what they reported. A name in braces stands for
// what would be different each time.
type script struct {
	*testing.T
	values map[string]string
	all    strings.Builder
}

// run runs one call and returns what it printed.
func (s *script) run(line string) string {
	s.Helper()
	filled := line
	for name, value := range s.values {
		filled = strings.ReplaceAll(filled, "{"+name+"}", value)
	}
	got := call(s.T, strings.Fields(filled)...)
	transcript := got.To(line)
	names := slices.SortedFunc(maps.Keys(s.values), func(a, b string) int { return len(s.values[b]) - len(s.values[a]) })
	for _, name := range names { // the longest first: one may hold another
		transcript = strings.ReplaceAll(transcript, s.values[name], "{"+name+"}")
	}
	s.all.WriteString(commandtest.Steady(transcript, commandtest.Times, commandtest.Requests()))
	return got.Out
}

// TestWrongCalls are refused before any server is asked.
func TestWrongCalls(t *testing.T) {
	s := &script{T: t, values: map[string]string{"none": filepath.Join(t.TempDir(), "none"), "hash": "sha256:" + strings.Repeat("0", 64), "member": memberFile(t)}}
	for _, line := range []string{
		"join", "join east", "join east west", "unjoin", "join East --cluster-kubeconfig {member} --kubeconfig {member}", "join east --cluster-kubeconfig {none} --kubeconfig {member}",
		"token make", "token create --kubeconfig {none}", "token create a b", "token create --print-register-command=maybe",
		"token create --print-register-command=agent", "token create --karmada-agent-image registry.example/flotilla-agent:v1", "token delete",
		"register", "register hub:6443", "register hub:6443 --token abcdef.0123456789abcdef",
		"register http://hub --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash}",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --cluster-name North",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --cert-expiration-seconds 5",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --karmada-agent-replicas 2",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {none} --cluster-name north",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --karmada-agent-image IMAGE --kubeconfig {member}",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member} --context south",
		"register 127.0.0.1:1 --token wrong --discovery-token-ca-cert-hash {hash} --kubeconfig {member} --wait 0s",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member} --dry-run",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --kubeconfig {member} --dry-run",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member} --cluster-name east --cluster-region eu --dry-run",
		"register hub:6443 --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --kubeconfig {member} --standalone here --dry-run",
		"unregister", "unregister North",
	} {
		s.run(line)
	}
	golden(t, "wrong.txt", s.all.String())
}

// memberFile leads to a member that is not there.
func memberFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "member")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: north\n" +
		"clusters: [{name: north, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: north, context: {cluster: north, user: north}}]\nusers: [{name: north, user: {token: secret}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLifeOfACluster registers another control plane as a member: it issues tokens and
// knows Deployments as any cluster does, but runs none.
func TestLifeOfACluster(t *testing.T) {
	env, member := hubs.Env(t), hubs.Env(t)
	env.Loops(t, agentstest.Register)
	cfg, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	there, err := clientcmd.BuildConfigFromFlags("", member.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &script{T: t, values: map[string]string{"hub": env.Kubeconfig, "member": member.Kubeconfig, "address": strings.TrimPrefix(cfg.Host, "https://"), "its URL": there.Host, "dir": dir}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.all.String())
		}
	})

	s.run("token list --kubeconfig {hub}")
	s.values["t1"] = strings.TrimSpace(s.run("token create abcdef.0123456789abcdef --ttl 0 --description nobody's --kubeconfig {hub}"))
	s.run("token create {t1} --kubeconfig {hub}")
	s.run("token create abc --kubeconfig {hub}")
	s.run("token create --groups system:masters --kubeconfig {hub}")
	s.run("token create --usages everything --kubeconfig {hub}")
	s.run("token create --ttl -1h --kubeconfig {hub}")
	s.run("token create --cluster-name North --kubeconfig {hub}")
	s.run("token create --cluster-name east-impersonator --kubeconfig {hub}")
	s.run("token create --cluster-id 1234 --kubeconfig {hub}")
	s.run("token list --kubeconfig {hub}")
	for words, want := range map[string]string{
		"token delete":              "abcdef\tnobody's\n:4\n",
		"token delete abcdef":       ":4\n",
		"join":                      ":4\n",
		"join east --apply-as":      "Author\nControlPlane\n:4\n",
		"token create --apply-as":   "Author\nControlPlane\n:4\n",
		"join --cluster-kubeconfig": ":0\n",
		"join east --cluster-kubeconfig " + memberFile(t) + " --cluster-context": "north\n:4\n",
	} {
		args := append([]string{"__complete", "--kubeconfig", env.Kubeconfig}, strings.Fields(words)...)
		if got := call(t, append(args, "")...); got.Out != want {
			t.Errorf("%s is completed by %q, want %q", words, got.Out, want)
		}
	}
	s.run("token delete abcdef --kubeconfig {hub}")
	s.run("token delete abcdef --kubeconfig {hub}")
	s.run("token delete ABCDEF --kubeconfig {hub}")

	out := lineOf(t, "token", "create", "--cluster-name", "north", "--print-register-command", "--kubeconfig", env.Kubeconfig)
	s.values["token"], s.values["hash"] = after(t, out, "--token "), after(t, out, "--discovery-token-ca-cert-hash ")
	s.values["token id"] = s.values["token"][:6]
	s.run("register {address} --token {token} --discovery-token-ca-cert-hash {hash} --cluster-name south --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member}")
	s.run("register {address} --token {token} --discovery-token-ca-cert-hash {hash} --cluster-name north --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {hub} --wait 1s")
	s.run("register {address} --token {token} --discovery-token-ca-cert-hash {hash} --cluster-name north --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member} --wait 1s")
	servertest.Until(t, "nothing is signed for a used token any more", func() bool {
		info := &corev1.ConfigMap{}
		err := env.Hub.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}, info)
		_, signed := info.Data[bootstrapapi.JWSSignatureKeyPrefix+s.values["token id"]]
		return err == nil && !signed
	})
	s.run("register {address} --token {token} --discovery-token-ca-cert-hash {hash} --cluster-name north --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member} --discovery-timeout 10s --wait 0s")
	for _, of := range []struct{ image, printed string }{{"IMAGE", out}, {"registry.example/flotilla-agent:v1", lineOf(t, "token", "create", "--cluster-name", "north",
		"--print-register-command", "--karmada-agent-image", "registry.example/flotilla-agent:v1", "--kubeconfig", env.Kubeconfig)}} {
		want := "flotilla register " + s.values["address"] + " --token " + after(t, of.printed, "--token ") + " --discovery-token-ca-cert-hash " + s.values["hash"] +
			" --cluster-name north --karmada-agent-image " + of.image + "\n"
		if of.printed != want {
			t.Errorf("the line is %q, want %q", of.printed, want)
		}
	}
	d := &appsv1.Deployment{}
	if err := member.Hub.Get(t.Context(), client.ObjectKey{Namespace: "karmada-system", Name: "karmada-agent"}, d); err != nil {
		t.Fatal(err)
	}
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example/flotilla-agent:v1" {
		t.Errorf("the image is %s", image)
	}
	s.run("unregister north --cluster-kubeconfig {member} --kubeconfig {hub} --dry-run")
	s.run("unregister north --cluster-kubeconfig {member} --kubeconfig {hub}")
	s.run("unregister north --kubeconfig {hub}")
	gone(t, member, &appsv1.Deployment{ObjectMeta: d.ObjectMeta})
	gone(t, env, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: identity.Role("north")}})

	out = lineOf(t, "token", "create", "--cluster-name", "edge", "--print-register-command=agent", "--kubeconfig", env.Kubeconfig)
	s.values["token2"] = after(t, out, "--bootstrap-token ")
	if !strings.HasSuffix(strings.TrimSpace(out), " --kubeconfig KUBECONFIG") {
		t.Errorf("the line of an agent does not lead to its cluster: %s", out)
	}
	s.run("register {address} --token {token2} --discovery-token-ca-cert-hash {hash} --cluster-name edge --cluster-region eu --kubeconfig {member} --standalone {dir}")
	agent, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "karmada-kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := client.New(agent, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	edge := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1alpha1.ClusterSpec{ID: systemID(t, member), SyncMode: clusterv1alpha1.Pull}}
	servertest.Until(t, "the agent makes its Cluster", func() bool {
		err := own.Create(t.Context(), edge.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	out = lineOf(t, "token", "create", "--print-register-command", "--kubeconfig", env.Kubeconfig)
	s.values["token3"] = after(t, out, "--token ")
	s.values["id"] = systemID(t, member)
	s.run("register {address} --token {token3} --discovery-token-ca-cert-hash {hash} --cluster-name edge --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member}")
	s.run("register {address} --token {token3} --discovery-token-ca-cert-hash {hash} --cluster-name other --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member}")
	s.run("register {address} --token abcdef.0123456789abcdef --discovery-token-ca-cert-hash {hash} --cluster-name other --karmada-agent-image registry.example/flotilla-agent:v1 --kubeconfig {member} --discovery-timeout 10s")
	s.run("unjoin edge --kubeconfig {hub}")
	s.run("unregister edge --karmada-config {dir}/karmada-kubeconfig")
	s.run("unregister edge --kubeconfig {hub}")
	s.run("unjoin edge --kubeconfig {hub}")
	pushed := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "pushed"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Push}}
	if err := env.Hub.Create(t.Context(), pushed); err != nil {
		t.Fatal(err)
	}
	s.values["nobody"] = memberFile(t)
	s.run("unregister pushed --cluster-kubeconfig {nobody} --kubeconfig {hub}")
	s.run("unregister pushed --cluster-kubeconfig {nobody}")
	s.run("unjoin pushed --cluster-kubeconfig {nobody} --kubeconfig {hub}")
	s.run("unjoin pushed --kubeconfig {hub} --dry-run")
	s.run("unjoin pushed --kubeconfig {hub}")
	golden(t, "life.txt", s.all.String())
	for name, value := range map[string]string{"a token": s.values["token"], "another": s.values["token2"], "the third": s.values["token3"]} {
		if _, secret, _ := strings.Cut(value, "."); strings.Contains(s.all.String(), secret) {
			t.Errorf("%s is shown", name)
		}
	}
}

// TestRegisterAClusterOfAnotherHub: register refuses a cluster that another control
// plane has, and leaves nothing there; --take-over says what it means, and takes it.
func TestRegisterAClusterOfAnotherHub(t *testing.T) {
	env, member := hubs.Env(t), hubs.Env(t)
	env.Loops(t, agentstest.Register)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	const another = `{"hub":"h2","cluster":"east","address":"https://two"}`
	metav1.SetMetaDataAnnotation(&system.ObjectMeta, clusterv1alpha1.ClaimAnnotation, another)
	if err := member.Hub.Update(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "theirs", Labels: map[string]string{"karmada.io/managed": "true"}}}
	rights := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "flotilla:edit", Labels: theirs.Labels}}
	for _, obj := range []client.Object{theirs, rights} {
		if err := member.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	line := lineOf(t, "token", "create", "--cluster-name", "north", "--print-register-command", "--kubeconfig", env.Kubeconfig)
	register := func(more ...string) (commandtest.Result, string) { // by one token, which is good for once
		t.Helper()
		dir := t.TempDir()
		args := append(strings.Fields(line)[1:], "--kubeconfig", member.Kubeconfig, "--standalone", dir, "--wait", "0s")
		result := call(t, append(args, more...)...)
		if err := member.Hub.Get(t.Context(), client.ObjectKeyFromObject(system), system); err != nil {
			t.Fatal(err)
		}
		return result, filepath.Join(dir, "karmada-kubeconfig")
	}

	result, file := register()
	for _, want := range []string{"cluster north is not registered, and its token is as good as before", "it is cluster east of the control plane at https://two", "--take-over"} {
		if result.Code == 0 || !strings.Contains(result.String(), want) {
			t.Errorf("it ends with %d and says %q, want %q", result.Code, result, want)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the way to the control plane was written")
	}
	if got := system.Annotations[clusterv1alpha1.ClaimAnnotation]; got != another {
		t.Errorf("the cluster carries %s", got)
	}

	result, _ = register("--take-over", "--dry-run")
	for _, want := range []string{"taking over cluster east of the control plane at https://two", "ConfigMap default/theirs stays: unless this control plane asks for it", "ClusterRole flotilla:edit goes on giving rights", "would write"} {
		if result.Code != 0 || !strings.Contains(result.Out, want) {
			t.Errorf("--take-over --dry-run ends with %d and says %q, want %q", result.Code, result, want)
		}
	}
	if got := system.Annotations[clusterv1alpha1.ClaimAnnotation]; got != another {
		t.Errorf("the cluster carries %s after a dry run", got)
	}

	result, file = register("--take-over")
	for _, want := range []string{"taking over cluster east of the control plane at https://two", "ConfigMap default/theirs stays: unless this control plane asks for it", "cluster north registered"} {
		if result.Code != 0 || !strings.Contains(result.Out, want) {
			t.Errorf("with --take-over it ends with %d and says %q, want %q", result.Code, result, want)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	if got, own := system.Annotations[clusterv1alpha1.ClaimAnnotation], `"hub":"`+systemID(t, env)+`"`; !strings.Contains(got, own) || !strings.Contains(got, `"former":["h2"]`) {
		t.Errorf("the cluster carries %s, want %s", got, own)
	}
}

// TestRegisterWhereNothingMayBeInstalled: a member that does not let the agent be
// installed costs no token.
func TestRegisterWhereNothingMayBeInstalled(t *testing.T) {
	env, member := hubs.Env(t), hubs.Env(t)
	env.Loops(t, agentstest.Register)
	reads := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "weak"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "weak"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weak"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "weak"}},
		},
	}
	for _, obj := range reads {
		if err := member.Hub.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	config, err := clientcmd.LoadFromFile(member.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = "weak"
	}
	weak := filepath.Join(t.TempDir(), "weak")
	if err := clientcmd.WriteToFile(*config, weak); err != nil {
		t.Fatal(err)
	}
	line := lineOf(t, "token", "create", "--cluster-name", "north", "--print-register-command", "--kubeconfig", env.Kubeconfig)
	args := append(strings.Fields(line)[1:], "--karmada-agent-image", "registry.example/flotilla-agent:v1", "--wait", "0s", "--kubeconfig")

	result := call(t, append(args, weak)...)
	for _, want := range []string{"cluster north is not registered, and its token is as good as before", `User "weak" cannot`} {
		if result.Code == 0 || !strings.Contains(result.String(), want) {
			t.Errorf("it ends with %d and says %q, want %q", result.Code, result, want)
		}
	}
	if result = call(t, append(args, member.Kubeconfig)...); result.Code != 0 {
		t.Errorf("the token is of no use any more: %s", result)
	}
}

// lineOf returns the one line that a call printed.
func lineOf(t *testing.T, args ...string) string {
	t.Helper()
	result := call(t, args...)
	if result.Code != 0 || strings.Count(result.Out, "\n") != 1 {
		t.Fatalf("%v: %s", args, result)
	}
	return result.Out
}

// after returns the word behind a flag.
func after(t *testing.T, line, flag string) string {
	t.Helper()
	_, rest, found := strings.Cut(line, flag)
	if !found {
		t.Fatalf("%q has no %s", line, flag)
	}
	return strings.Fields(rest)[0]
}

func systemID(t *testing.T, env *servertest.Env) string {
	t.Helper()
	system := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}}
	if err := env.Hub.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}

func gone(t *testing.T, env *servertest.Env, obj client.Object) {
	t.Helper()
	servertest.Until(t, fmt.Sprintf("%T %s is gone", obj, obj.GetName()), func() bool {
		return apierrors.IsNotFound(env.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	})
}
