package agents_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/controlplane"
	"github.com/flotilla-io/flotilla/controlplane/servertest"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/internal/registration/karmadas"
	"github.com/flotilla-io/flotilla/internal/registration/token"
	"github.com/flotilla-io/flotilla/reconciler/agents/agentstest"
)

// karmadaWorld is a control plane that karmadactl registers clusters at, or one that
// does not any more.
type karmadaWorld struct {
	*testing.T
	*world
	stop func()
}

func karmadaWorldIn(t *testing.T, dir string, allow bool) *karmadaWorld {
	t.Helper()
	env, err := servertest.StartBy(t.Context(), dir, controlplane.Rules{AllowKarmadactlRegister: allow})
	if err != nil {
		t.Fatal(err)
	}
	register := agentstest.Register
	if allow {
		register = agentstest.RegisterKarmadas
	}
	end := env.StartLoops(t, register)
	admin, err := clientcmd.BuildConfigFromFlags("", env.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := cert.ParseCertsPEM(admin.CAData)
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	w := &karmadaWorld{T: t, world: &world{Env: env, admin: admin, hash: registration.CAHash(ca[0])}}
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := end(); err != nil {
			t.Error(err)
		}
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(w.stop)
	return w
}

// register is a call of karmadactl register with a token of karmadactl's.
func (w *karmadaWorld) register(cluster, token string, warned *[]string) *karmadas.Register {
	w.Helper()
	err := w.Hub.Create(w.Context(), karmadas.TokenSecret(token))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
	byToken := &rest.Config{Host: w.admin.Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: w.admin.CAData}}
	servertest.Until(w.T, "the token counts", func() bool { // its signature may be there before
		return !apierrors.IsUnauthorized(hubOf(w.T, byToken).Get(w.Context(), client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{}))
	})
	return &karmadas.Register{Endpoint: w.admin.Host, Token: token, CAHash: w.hash, Cluster: cluster, Warned: func(text string) {
		if warned != nil {
			*warned = append(*warned, text)
		}
	}}
}

// certificateOf is the certificate that a connection comes with.
func (w *karmadaWorld) certificateOf(cfg *rest.Config) *x509.Certificate {
	w.Helper()
	block, _ := pem.Decode(cfg.CertData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		w.Fatal(err)
	}
	return certificate
}

func must[T any](t *testing.T) func(T, error) T {
	return func(got T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
}

// member is a cluster that karmadactl has registered, with its agent.
type member struct {
	cfg, generator *rest.Config
	agent          *karmadas.Agent
}

// bring registers a cluster and starts its agent.
func (w *karmadaWorld) bring(cluster, token string) member {
	w.Helper()
	r := w.register(cluster, token, nil)
	config := must[*rest.Config](w.T)
	byToken := config(r.Discover(w.Context()))
	generator := config(r.Generator(w.Context(), byToken))
	must[[]client.Object](w.T)(r.MakeRights(w.Context(), hubOf(w.T, generator)))
	cfg := config(r.Agent(w.Context(), byToken))
	agent := must[*karmadas.Agent](w.T)(karmadas.NewAgent(cfg, cluster, "id-"+cluster))
	servertest.Until(w.T, "the agent's rights count", func() bool {
		everywhere := agent.Get(w.Context(), client.ObjectKey{Name: cluster}, &clusterv1alpha1.Cluster{})
		inNamespace := agent.Get(w.Context(), client.ObjectKey{Namespace: "karmada-cluster", Name: cluster}, &corev1.Secret{}) // is heard of apart
		return !apierrors.IsForbidden(everywhere) && !apierrors.IsForbidden(inNamespace)
	})
	for _, step := range []func(context.Context) error{agent.Elect, agent.Start, agent.Beat, agent.Report} {
		if err := step(w.Context()); err != nil {
			w.Fatal(err)
		}
	}
	return member{cfg: cfg, generator: generator, agent: agent}
}

// TestKarmadactlRegister goes the way of a cluster of Karmada's from its token to its
// end, and on at a control plane that takes them no more.
func TestKarmadactlRegister(t *testing.T) {
	dir := t.TempDir()
	w := karmadaWorldIn(t, dir, true)
	t.Run("register", func(t *testing.T) { w.registersInOrder(t) })
	north, south := w.bring("north", "aaaaaa.0123456789abcdef"), w.bring("south", "bbbbbb.0123456789abcdef")
	t.Run("the agent", func(t *testing.T) { w.agentWorks(t, north) })
	t.Run("the agent may not", func(t *testing.T) { w.agentMayNot(t, north) })
	t.Run("the maker of rights may not", func(t *testing.T) { w.generatorMayNot(t, north.generator) })
	t.Run("a token may not", func(t *testing.T) { w.tokenMayNot(t) })
	t.Run("unregister", func(t *testing.T) { w.unregisters(t, south) })
	w.stop()
	w = karmadaWorldIn(t, dir, false)
	t.Run("not allowed any more", func(t *testing.T) { w.isOver(t, north) })
}

// registersInOrder makes the requests of karmadactl register one by one.
func (w *karmadaWorld) registersInOrder(t *testing.T) {
	var warned []string
	r := w.register("east", "cccccc.0123456789abcdef", &warned)
	config := must[*rest.Config](t)
	byToken := config(r.Discover(t.Context()))
	generator := config(r.Generator(t.Context(), byToken))
	if c := w.certificateOf(generator); c.NotAfter.Sub(time.Now()) > 11*time.Minute || c.Subject.CommonName != "system:karmada:agent:rbac-generator" {
		t.Errorf("rights are asked for with a certificate of %s until %s", c.Subject, c.NotAfter)
	}
	made, err := r.MakeRights(t.Context(), hubOf(t, generator))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := r.MakeRights(t.Context(), hubOf(t, generator)); err != nil || !cmp.Equal(again, made) {
		t.Errorf("asked for once more: %v, %s", err, cmp.Diff(made, again))
	}
	for _, obj := range made {
		stored, _ := obj.DeepCopyObject().(client.Object)
		if err := w.Hub.Get(t.Context(), client.ObjectKeyFromObject(obj), stored); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is stored before the agent has a certificate: %v", obj, obj.GetName(), err)
		}
	}
	wantWarned := []string{
		"the control plane gives the agent of cluster east its rights itself, and not the right to: list clusters.cluster.karmada.io, watch clusters.cluster.karmada.io, get namespaces, " +
			"get leases.coordination.k8s.io, create leases.coordination.k8s.io, update leases.coordination.k8s.io, create events, patch events and 1 more",
		"the control plane gives the agent of cluster east its rights itself, and not the right to: create works.work.karmada.io, delete works.work.karmada.io",
	}
	if diff := cmp.Diff(append(wantWarned, wantWarned...), warned); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	warned = nil
	agent := config(r.Agent(t.Context(), byToken))
	if c := w.certificateOf(agent); c.NotAfter.Sub(time.Now()) > 91*24*time.Hour || c.Subject.CommonName != "system:karmada:agent:east" || !cmp.Equal(c.Subject.Organization, []string{"system:karmada:agents"}) {
		t.Errorf("the agent has a certificate of %s until %s", c.Subject, c.NotAfter)
	}
	if want := []string{"the certificate is good for at most 90 days: karmadactl register --enable-cert-rotation has the agent renew it"}; !cmp.Equal(want, warned) {
		t.Errorf("warnings = %q, want %q", warned, want)
	}
	// What was answered is what there is, now that the agent has its certificate: the
	// Roles of a namespace follow the Cluster.
	answered, _ := made[0].(*rbacv1.ClusterRole)
	role := &rbacv1.ClusterRole{}
	if err := w.Hub.Get(t.Context(), client.ObjectKeyFromObject(answered), role); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answered.Rules, role.Rules); diff != "" {
		t.Errorf("rights of the agent (-answered +stored):\n%s", diff)
	}
}

// agentWorks is what Karmada's agent does when it runs.
func (w *karmadaWorld) agentWorks(t *testing.T, m member) {
	ctx, agent := t.Context(), m.agent
	all := &clusterv1alpha1.ClusterList{}
	if err := agent.List(ctx, all); err != nil || len(all.Items) != 1 || all.Items[0].Name != "north" {
		t.Errorf("all clusters that it sees: %v, %v", all.Items, err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.Hub.Get(ctx, client.ObjectKey{Name: "north"}, cluster); err != nil {
		t.Fatal(err)
	}
	if as := cluster.Annotations[clusterv1alpha1.ApplyAsAnnotation]; as != clusterv1alpha1.ApplyAsHub {
		t.Errorf("templates are applied there as %q, but Karmada's agent applies them as itself", as)
	}
	secret := &corev1.Secret{}
	if err := w.Hub.Get(ctx, client.ObjectKey{Namespace: "karmada-cluster", Name: "north"}, secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != cluster.UID {
		t.Errorf("owners of its credentials: %v", secret.OwnerReferences)
	}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: agent.Space(), Name: "web"}}
	if err := w.Hub.Create(ctx, work); err != nil {
		t.Fatal(err)
	}
	if err := agent.Get(ctx, client.ObjectKeyFromObject(work), work); err != nil {
		t.Fatal(err)
	}
	if err := agent.Apply(ctx, work); err != nil {
		t.Fatal(err)
	}
	for _, about := range []corev1.ObjectReference{
		{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "north", UID: cluster.UID},
		{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work", Namespace: agent.Space(), Name: "web", UID: work.UID},
	} {
		if err := agent.Record(ctx, about, "SyncSucceed"); err != nil {
			t.Error(err)
		}
	}
	for what, again := range map[string]func(context.Context) error{"is elected": agent.Elect, "beats": agent.Beat} {
		if err := again(ctx); err != nil {
			t.Errorf("%s again: %v", what, err)
		}
	}
	if err := w.Hub.Delete(ctx, work); err != nil {
		t.Fatal(err)
	}
	servertest.Until(t, "the agent lets go of the Work", func() bool {
		err := agent.Get(ctx, client.ObjectKeyFromObject(work), work)
		return apierrors.IsNotFound(err) || err == nil && !work.DeletionTimestamp.IsZero() && agent.LetGo(ctx, work) == nil
	})
	next := w.register("north", "aaaaaa.0123456789abcdef", nil)
	renewed, err := next.Agent(ctx, m.cfg) // as its rotation of certificates does
	if err != nil {
		t.Fatal(err)
	}
	if err := hubOf(t, renewed).Get(ctx, client.ObjectKey{Name: "north"}, cluster); err != nil {
		t.Errorf("with the next certificate: %v", err)
	}
}

// agentMayNot tries as the agent of north what is another's, or nobody's.
func (w *karmadaWorld) agentMayNot(t *testing.T, m member) {
	agent, ctx := m.agent, t.Context()
	leases := client.ObjectKey{Namespace: "karmada-system", Name: "karmada-agent-south"}
	lease := func(name string) client.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: name}}
	}
	work := func() *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-north", GenerateName: "w-"}}
	}
	cases := map[string]struct {
		do   func() error
		says string
	}{
		"read another Cluster":   {func() error { return agent.Get(ctx, client.ObjectKey{Name: "south"}, &clusterv1alpha1.Cluster{}) }, `cannot get resource "clusters"`},
		"change another Cluster": {func() error { return agent.Delete(ctx, clusterOf("south", "")) }, `cannot delete resource "clusters"`},
		"remove all Clusters":    {func() error { return agent.DeleteAllOf(ctx, &clusterv1alpha1.Cluster{}) }, `cannot deletecollection resource "clusters"`},
		"make another Cluster":   {func() error { return agent.Create(ctx, clusterOf("third", "id-3")) }, "is not this agent's"},
		"read another's Works":   {func() error { return agent.List(ctx, &workv1alpha1.WorkList{}, client.InNamespace("karmada-es-south")) }, `cannot list resource "works"`},
		"read all Works":         {func() error { return agent.List(ctx, &workv1alpha1.WorkList{}) }, `cannot list resource "works"`},
		"see another by its name": {func() error {
			return agent.List(ctx, &clusterv1alpha1.ClusterList{}, client.MatchingFields{"metadata.name": "south"})
		}, `cannot list resource "clusters"`},
		"make Works": {func() error { return agent.Create(ctx, work()) }, `cannot create resource "works"`},
		"read another's Secret": {func() error {
			return agent.Get(ctx, client.ObjectKey{Namespace: "karmada-cluster", Name: "south"}, &corev1.Secret{})
		}, `cannot get resource "secrets"`},
		"list Secrets":            {func() error { return agent.List(ctx, &corev1.SecretList{}, client.InNamespace("karmada-cluster")) }, `cannot list resource "secrets"`},
		"make another's Secret":   {func() error { return agent.Create(ctx, secretOf("third")) }, "is not this agent's"},
		"read another's election": {func() error { return agent.Get(ctx, leases, &coordinationv1.Lease{}) }, `cannot get resource "leases"`},
		"stand in for another":    {func() error { return agent.Create(ctx, lease("karmada-agent-third")) }, `the Lease "karmada-agent-third" is not this agent's: its own is ["karmada-agent-north"]`},
		"hold the loops' Lease":   {func() error { return agent.Create(ctx, lease("flotilla")) }, `the Lease "flotilla" is not this agent's`},
		"remove its election":     {func() error { return agent.Delete(ctx, lease("karmada-agent-north")) }, `cannot delete resource "leases"`},
		"give rights": {func() error {
			return agent.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}})
		}, `cannot create resource "clusterrolebindings"`},
		"change its rights": {func() error {
			return agent.Update(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: karmadas.RoleName("north")}})
		}, `cannot update resource "clusterroles"`},
		"ask for another's certificate": {func() error {
			return agent.Create(ctx, asking(t, pkix.Name{CommonName: identity.Agent("south"), Organization: []string{identity.AgentsGroup}}, nil))
		}, "may ask for the certificate of the agent of north alone, not of south"},
		"ask for rights": {func() error {
			return agent.Create(ctx, asking(t, pkix.Name{CommonName: identity.Agent("rbac-generator"), Organization: []string{identity.AgentsGroup}}, generators("north")))
		}, "is given by a token alone"},
		"ask for another group": {func() error {
			return agent.Create(ctx, asking(t, pkix.Name{CommonName: identity.Agent("north"), Organization: []string{identity.AgentsGroup, "system:nodes"}}, nil))
		}, "there must be one: system:karmada:agents"},
	}
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) { refused(t, tc.do(), tc.says) })
	}
	t.Run("see all but its own", func(t *testing.T) {
		all := &clusterv1alpha1.ClusterList{}
		if err := agent.List(ctx, all, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("metadata.name", "north")}); err != nil || len(all.Items) != 0 {
			t.Errorf("it sees %d clusters: %v", len(all.Items), err)
		}
	})
	t.Run("hear of another", func(t *testing.T) {
		watch, err := agent.Watch(ctx, &clusterv1alpha1.ClusterList{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		for _, name := range []string{"south", "north"} { // its own comes after: nothing was on its way
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"touched":"yes"}}}`))
			if err := w.Hub.Patch(ctx, clusterOf(name, ""), patch); err != nil {
				t.Fatal(err)
			}
		}
		for event := range watch.ResultChan() {
			got, _ := event.Object.(*clusterv1alpha1.Cluster)
			if got == nil || got.Name != "north" {
				t.Fatalf("it hears of %v", event)
			}
			if got.Labels["touched"] == "yes" {
				return
			}
		}
		t.Error("the watch ended")
	})
}

// generators names a request as karmadactl does.
func generators(cluster string) func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest) {
	return func(_ *x509.CertificateRequest, csr *certificatesv1.CertificateSigningRequest) {
		csr.GenerateName = "agent-rbac-generator-" + cluster
	}
}

func refused(t *testing.T, err error, says string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("= %v, want forbidden with %q", err, says)
	}
}

// generatorMayNot asks as the maker of rights for more than the rights of a new agent.
func (w *karmadaWorld) generatorMayNot(t *testing.T, cfg *rest.Config) {
	hub, ctx := hubOf(t, cfg), t.Context()
	role := func(namespace, name string, rules ...rbacv1.PolicyRule) client.Object {
		if namespace == "" {
			return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		}
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules}
	}
	rule := func(group, resource, verb string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{verb}}
	}
	binding := func(to string, subject rbacv1.Subject) client.Object {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: karmadas.RoleName("new")}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: to},
		}
	}
	user := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
	}
	of := karmadas.RoleName
	made := map[string]struct {
		obj  client.Object
		says string
	}{
		"a role of an agent that is there":   {role("", of("north")), "the cluster north is in the fleet already"},
		"a Role of one that is there":        {role("karmada-es-north", of("north")+"-work"), "the cluster north is in the fleet already"},
		"the namespace of one that is there": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-north"}}, "the cluster north is in the fleet already"},
		"another namespace":                  {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, "the agent of a cluster has its Works in the namespace karmada-es-NAME"},
		"another role":                       {role("", "mine"), "the rights of the agent of a cluster are called system:karmada:NAME:agent"},
		"a role that others have":            {role("", "system:karmada:agent-bootstrapper"), "the rights of the agent of a cluster are called"},
		"its own role":                       {role("", of("rbac-generator")), "no cluster is called rbac-generator"},
		"a Role in another namespace":        {role("kube-system", of("new")), "the agent of cluster new has no rights in the namespace kube-system"},
		"a Role with another's Works":        {role("karmada-es-south", of("new")+"-work"), "the agent of cluster new has no rights in the namespace karmada-es-south"},
		"all":                                {role("", of("new"), rule("*", "*", "*")), "may not have the right to: * *.*"},
		"Secrets everywhere":                 {role("", of("new"), rule("", "secrets", "get")), "may not have the right to: get secrets"},
		"another's Secret":                   {role("karmada-cluster", of("new"), rule("", "secrets", "get", "new", "south")), "may not have the right to: get secrets south"},
		"every Secret":                       {role("karmada-cluster", of("new"), rule("", "secrets", "get")), "may not have the right to: get secrets"},
		"another Cluster":                    {role("", of("new"), rule("cluster.karmada.io", "clusters", "get", "south")), "may not have the right to: get clusters.cluster.karmada.io south"},
		"the way into clusters":              {role("", of("new"), rule("cluster.karmada.io", "clusters/proxy", "get", "new")), "may not have the right to: get clusters/proxy"},
		"to give rights":                     {role("", of("new"), rule(rbacv1.GroupName, "clusterroles", "escalate")), "may not have the right to: escalate clusterroles"},
		"to be others":                       {role("", of("new"), rule("", "users", "impersonate")), "may not have the right to: impersonate users"},
		"to approve certificates":            {role("", of("new"), rule("certificates.k8s.io", "certificatesigningrequests/approval", "update")), "may not have the right to: update certificatesigningrequests/approval"},
		"the rights of others": {&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: of("new")}, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}},
		}, "aggregationRule"},
		"rights for all agents":    {binding(of("new"), rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: identity.AgentsGroup}), "is not the agent, which is the user system:karmada:agent:new"},
		"rights for another agent": {binding(of("new"), user(identity.Agent("south"))), "is not the agent"},
		"rights for itself":        {binding(of("new"), user(identity.Agent("rbac-generator"))), "is not the agent"},
		"the administrator's role": {binding("cluster-admin", user(identity.Agent("new"))), "it is to the ClusterRole cluster-admin"},
		"a Cluster":                {clusterOf("new", "id-new"), `cannot create resource "clusters"`},
		"a Secret":                 {secretOf("new"), `cannot create resource "secrets"`},
		"a request for a certificate": {asking(t, pkix.Name{CommonName: identity.Agent("rbac-generator"), Organization: []string{identity.AgentsGroup}}, generators("new")),
			`cannot create resource "certificatesigningrequests"`},
	}
	for what, tc := range made {
		t.Run("make "+what, func(t *testing.T) { refused(t, hub.Create(ctx, tc.obj), tc.says) })
	}
	done := map[string]struct {
		do   func() error
		says string
	}{
		"update one that is there": {func() error { return hub.Update(ctx, role("", of("north"))) }, "the cluster north is in the fleet already"},
		"patch": {func() error {
			return hub.Patch(ctx, role("", of("new")), client.RawPatch("application/merge-patch+json", []byte("{}")))
		}, `cannot patch resource "clusterroles"`},
		"read other roles":   {func() error { return hub.Get(ctx, client.ObjectKey{Name: "cluster-admin"}, &rbacv1.ClusterRole{}) }, "the rights of the agent of a cluster are called"},
		"list roles":         {func() error { return hub.List(ctx, &rbacv1.ClusterRoleList{}) }, `cannot list resource "clusterroles"`},
		"list Clusters":      {func() error { return hub.List(ctx, &clusterv1alpha1.ClusterList{}) }, `cannot list resource "clusters"`},
		"read Secrets":       {func() error { return hub.List(ctx, &corev1.SecretList{}) }, `cannot list resource "secrets"`},
		"read Works":         {func() error { return hub.List(ctx, &workv1alpha1.WorkList{}) }, `cannot list resource "works"`},
		"remove other roles": {func() error { return hub.Delete(ctx, role("", "cluster-admin")) }, "the rights of the agent of a cluster are called"},
	}
	for what, tc := range done {
		t.Run(what, func(t *testing.T) { refused(t, tc.do(), tc.says) })
	}
	t.Run("remove the rights of an agent", func(t *testing.T) {
		if err := hub.Delete(ctx, role("", of("north"))); !apierrors.IsNotFound(err) {
			t.Errorf("= %v, want not found", err)
		}
		if err := w.Hub.Get(ctx, client.ObjectKey{Name: of("north")}, &rbacv1.ClusterRole{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("be the agent of a cluster of its name", func(t *testing.T) {
		if err := w.Hub.Create(ctx, clusterOf("rbac-generator", "id-g")); err != nil {
			t.Fatal(err)
		}
		w.leaves(t, "rbac-generator")
		if err := w.Hub.Create(ctx, clusterOf("after", "id-after")); err != nil {
			t.Fatal(err)
		}
		w.leaves(t, "after")
		servertest.Until(t, "the agent of the next cluster has its rights", func() bool {
			return w.Hub.Get(ctx, client.ObjectKey{Name: of("after")}, &rbacv1.ClusterRole{}) == nil
		})
		if err := w.Hub.Get(ctx, client.ObjectKey{Name: of("rbac-generator")}, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
			t.Errorf("the maker of rights has a role: %v", err)
		}
		refused(t, hub.Get(ctx, client.ObjectKey{Name: "rbac-generator"}, &clusterv1alpha1.Cluster{}), `cannot get resource "clusters"`)
	})
	t.Run("have a right", func(t *testing.T) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: identity.Agent("rbac-generator"), Groups: []string{identity.AgentsGroup, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: rbacv1.GroupName, Resource: "clusterroles", Verb: "create"},
		}}
		if err := w.Hub.Create(ctx, review); err != nil || review.Status.Allowed {
			t.Errorf("a role lets it make roles: %v, %v", review.Status, err)
		}
	})
}

// tokenMayNot tries with tokens what they are not for.
func (w *karmadaWorld) tokenMayNot(t *testing.T) {
	generator := pkix.Name{CommonName: identity.Agent("rbac-generator"), Organization: []string{identity.AgentsGroup}}
	free := hubOf(t, w.byToken(t, w.token(t, "", "")))
	bound := hubOf(t, w.byToken(t, w.token(t, "lone", "")))
	t.Run("ask for rights under another name", func(t *testing.T) {
		refused(t, free.Create(t.Context(), asking(t, generator, nil)), "is not the name of a request of karmadactl's")
	})
	t.Run("ask for rights of another cluster than its own", func(t *testing.T) {
		refused(t, bound.Create(t.Context(), asking(t, generator, generators("other"))), "about the cluster lone")
	})
	t.Run("ask for rights as another group", func(t *testing.T) {
		wider := pkix.Name{CommonName: generator.CommonName, Organization: []string{identity.AgentsGroup, "system:nodes"}}
		refused(t, free.Create(t.Context(), asking(t, wider, generators("x"))), "there must be one: system:karmada:agents")
	})
	t.Run("take a cluster over", func(t *testing.T) {
		r := w.register("north", "dddddd.0123456789abcdef", nil)
		byToken := must[*rest.Config](t)(r.Discover(t.Context()))
		maker := must[*rest.Config](t)(r.Generator(t.Context(), byToken))
		_, err := r.MakeRights(t.Context(), hubOf(t, maker))
		refused(t, err, "the cluster north is in the fleet already: choose another name; or unregister it first")
		_, err = r.Agent(t.Context(), byToken)
		refused(t, err, "the cluster north is registered already")
	})
	t.Run("register a cluster under two names", func(t *testing.T) {
		r := w.register("twin", "eeeeee.0123456789abcdef", nil)
		byToken := must[*rest.Config](t)(r.Discover(t.Context()))
		agent := must[*karmadas.Agent](t)(karmadas.NewAgent(must[*rest.Config](t)(r.Agent(t.Context(), byToken)), "twin", "id-north"))
		servertest.Until(t, "the agent's rights count", func() bool {
			return !apierrors.IsForbidden(agent.Get(t.Context(), client.ObjectKey{Name: "twin"}, &clusterv1alpha1.Cluster{}))
		})
		refused(t, agent.Start(t.Context()), "north")
	})
	t.Run("be spent by asking for rights", func(t *testing.T) {
		made, _, err := token.Create(t.Context(), w.Hub, token.Options{Cluster: "once"})
		if err != nil {
			t.Fatal(err)
		}
		r := &karmadas.Register{Endpoint: w.admin.Host, Token: made, CAHash: w.hash, Cluster: "once"}
		byToken := must[*rest.Config](t)(r.Discover(t.Context()))
		must[*rest.Config](t)(r.Generator(t.Context(), byToken))
		must[*rest.Config](t)(r.Agent(t.Context(), byToken))
		_, err = r.Generator(t.Context(), byToken)
		refused(t, err, "has been used")
	})
}

// unregisters is what karmadactl unregister asks for, as an administrator.
func (w *karmadaWorld) unregisters(t *testing.T, m member) {
	ctx := t.Context()
	if err := w.Hub.Delete(ctx, clusterOf("south", "")); err != nil {
		t.Fatal(err)
	}
	servertest.Until(t, "the cluster is gone", func() bool {
		return apierrors.IsNotFound(w.Hub.Get(ctx, client.ObjectKey{Name: "south"}, &clusterv1alpha1.Cluster{}))
	})
	for _, obj := range karmadas.Rights("south") {
		if err := w.Hub.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
			t.Errorf("%T: %v", obj, err)
		}
	}
	servertest.Until(t, "its agent may do nothing more", func() bool {
		err := m.agent.Get(ctx, client.ObjectKey{Name: "south"}, &clusterv1alpha1.Cluster{})
		return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	})
}

// isOver: what the flag allowed goes with it, also for who has a certificate.
func (w *karmadaWorld) isOver(t *testing.T, m member) {
	ctx := t.Context()
	moved := func(cfg *rest.Config) *rest.Config {
		out := rest.CopyConfig(cfg)
		out.Host = w.admin.Host
		return out
	}
	r := w.register("late", "ffffff.0123456789abcdef", nil)
	byToken := must[*rest.Config](t)(r.Discover(ctx))
	_, err := r.Generator(ctx, byToken)
	refused(t, err, "register the cluster with flotilla register, or start flotillad serve with --allow-karmadactl-register")
	r.Cluster = "late"
	maker := hubOf(t, moved(m.generator))
	_, err = r.MakeRights(ctx, maker)
	refused(t, err, `cannot get resource "namespaces"`)
	for _, obj := range karmadas.Rights("late") {
		refused(t, maker.Create(ctx, obj), "cannot create resource")
	}
	agent := must[*karmadas.Agent](t)(karmadas.NewAgent(moved(m.cfg), "north", "id-north"))
	refused(t, agent.List(ctx, &clusterv1alpha1.ClusterList{}), `cannot list resource "clusters"`)
	refused(t, agent.Elect(ctx), `cannot get resource "leases"`)
	if err := agent.Beat(ctx); err != nil { // what agents of Flotilla may do, it may go on to do
		t.Error(err)
	}
	if err := agent.List(ctx, &workv1alpha1.WorkList{}, client.InNamespace(agent.Space())); err != nil {
		t.Error(err)
	}
}
