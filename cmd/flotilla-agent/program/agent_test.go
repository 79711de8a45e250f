package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/registration"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// TestLife goes through the life of an agent on a real hub and a real member.
func TestLife(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a hub and a member")
	}
	s := newStage(t)
	var p *process
	for _, step := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"it registers by a token and is ready", func(t *testing.T) { p = s.testRegister(t) }},
		{"it carries what it is given, and reports", s.testCarry},
		{"it tells of its nodes, as they change", s.testNodes},
		{"it applies as who applied a template, and as nobody else", s.testAuthor},
		{"a copy of it on another machine waits, and goes on when it stops", func(t *testing.T) { p = s.testCopy(t, p) }},
		{"cut off, it puts back what is changed, and does not pester the hub", func(t *testing.T) { s.testCutOff(t, p) }},
		{"it starts without the hub, and catches up with the latest state alone", func(t *testing.T) { p = s.testStartAlone(t, p) }},
		{"the hub starts anew", func(t *testing.T) { s.testHubRestarts(t, p) }},
		{"a hub that was restored empty takes nothing away", func(t *testing.T) { s.testEmptyHub(t, p) }},
		{"it stops cleanly", func(t *testing.T) {
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}},
		{"its certificate has expired meanwhile", s.testExpired},
		{"it leaves with what it was given", func(t *testing.T) { p = s.testLeave(t) }},
		{"it is registered anew, beside the agent that it had", func(t *testing.T) { s.testBeside(t, p) }},
		{"it is registered anew, from the folder that it had", func(t *testing.T) { p = s.testAnew(t) }},
	} {
		if !t.Run(step.name, step.run) {
			if p != nil {
				t.Logf("the agent's log:\n%s", p.log)
			}
			return
		}
	}
}

func (s *stage) ready(ctx context.Context) error {
	c := &clusterv1alpha1.Cluster{}
	if err := s.env.Hub.Get(ctx, client.ObjectKey{Name: site1}, c); err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady) || len(c.Status.APIEnablements) == 0 || c.Status.NodeSummary == nil {
		return fmt.Errorf("status: %v", c.Status.Conditions)
	}
	return nil
}

func (s *stage) testRegister(t *testing.T) *process {
	with, hash := s.token(t)
	p := s.run(t, "--bootstrap-token", with, "--hub-endpoint", s.link.address(), "--discovery-token-ca-cert-hash", hash,
		"--cluster-region", "north", "--cluster-provider", "acme", "--cluster-lease-duration", "4s")
	eventually(t, "the cluster is ready", s.ready)
	system := &corev1.Namespace{}
	if err := s.edge.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		t.Fatal(err)
	}
	c := &clusterv1alpha1.Cluster{}
	if err := s.env.Hub.Get(t.Context(), client.ObjectKey{Name: site1}, c); err != nil {
		t.Fatal(err)
	}
	if c.Spec.SyncMode != clusterv1alpha1.Pull || c.Spec.ID != string(system.UID) || c.Spec.Region != "north" || c.Spec.Provider != "" || c.Spec.APIEndpoint != s.member.Server {
		t.Errorf("the cluster is %+v", c.Spec)
	}
	if as := c.Annotations[clusterv1alpha1.ApplyAsAnnotation]; as != clusterv1alpha1.ApplyAsAuthor {
		t.Errorf("it applies as %q, its token says otherwise", as)
	}
	for _, ref := range []*clusterv1alpha1.LocalSecretReference{c.Spec.SecretRef, c.Spec.ImpersonatorSecretRef} {
		eventually(t, "credentials are on the hub", func(ctx context.Context) error {
			secret := &corev1.Secret{}
			if err := s.env.Hub.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
				return err
			}
			if len(secret.Data[clusterv1alpha1.SecretTokenKey]) == 0 || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != c.UID {
				return errors.New("it has no token, or does not go with the cluster")
			}
			return nil
		})
	}
	first := metav1.MicroTime{}
	eventually(t, "the lease is renewed", func(ctx context.Context) error {
		lease := &coordinationv1.Lease{}
		if err := s.env.Hub.Get(ctx, client.ObjectKey{Namespace: "karmada-cluster", Name: site1}, lease); err != nil {
			return err
		}
		if first.IsZero() {
			first = *lease.Spec.RenewTime
		}
		if !first.Before(lease.Spec.RenewTime) {
			return errors.New("not yet")
		}
		return nil
	})
	return p
}

func (s *stage) testCarry(t *testing.T) {
	for _, name := range []string{"one", "two", "three"} {
		eventually(t, "the work is made", func(ctx context.Context) error { return s.env.Hub.Create(ctx, work(name, "1")) })
	}
	s.stands(t, "one", "1")
	s.stands(t, "two", "1")
	s.stands(t, "three", "1")
	for _, name := range []string{"one", "two", "three"} {
		s.reported(t, name, 1)
	}
}

// testAuthor: what a user of the hub applied is made by the rights that he has in the
// member, and by no others.
func (s *stage) testAuthor(t *testing.T) {
	authored := work("authored", "1")
	authored.Annotations = map[string]string{"propagation.flotilla.io/applied-by": `[{"user":"alice"}]`}
	if err := s.env.Hub.Create(t.Context(), authored); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the work is refused", func(ctx context.Context) error {
		w := &workv1alpha1.Work{}
		if err := s.env.Hub.Get(ctx, client.ObjectKeyFromObject(authored), w); err != nil {
			return err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != workv1alpha1.WorkAccountForbiddenReason || !strings.Contains(c.Message, "flotilla:user:alice") {
			return fmt.Errorf("status: %+v", w.Status)
		}
		return nil
	})
	for _, obj := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice"}, Rules: []rbacv1.PolicyRule{{
			Verbs: []string{"create", "patch"}, APIGroups: []string{""}, Resources: []string{"configmaps"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alice"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "alice"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "flotilla:user:alice"}},
		},
	} {
		if err := s.edge.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	s.stands(t, "authored", "1")
	s.reported(t, "authored", 1)
}

// reported waits until a Work says that its generation was applied.
func (s *stage) reported(t *testing.T, name string, generation int64) {
	t.Helper()
	eventually(t, "the work's status is there", func(ctx context.Context) error {
		w := &workv1alpha1.Work{}
		if err := s.env.Hub.Get(ctx, client.ObjectKey{Namespace: space(), Name: name}, w); err != nil {
			return err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkApplied)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration < generation || len(w.Status.ManifestStatuses) != 1 {
			return fmt.Errorf("status: %+v", w.Status)
		}
		return nil
	})
}

// testCopy starts a second agent of the cluster from a copy of the first one's folder.
func (s *stage) testCopy(t *testing.T, first *process) *process {
	copied := filepath.Join(s.life.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(s.folder)); err != nil {
		t.Fatal(err)
	}
	waits := func(p *process, since int) {
		t.Helper()
		eventually(t, "an agent says that another one acts in the cluster", func(context.Context) error {
			if log := p.log.String()[since:]; !strings.Contains(log, "Another agent acts in this cluster") {
				return errors.New(log)
			}
			return nil
		})
	}
	second := s.run(t, "--data-dir", copied, "--karmada-kubeconfig", filepath.Join(copied, "hub.kubeconfig"), "--cluster-lease-duration", "4s")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of the copy:\n%s", second.log)
		}
	})
	waits(second, 0)
	s.set(t, "two", "first")
	s.stands(t, "two", "first")
	if log := second.log.String(); strings.Contains(log, "The hub is there") {
		t.Errorf("the copy acts, too:\n%s", log)
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	s.set(t, "two", "second")
	s.stands(t, "two", "second")

	again := s.run(t, "--karmada-kubeconfig", filepath.Join(s.folder, "hub.kubeconfig"), "--cluster-lease-duration", "4s")
	waits(again, 0)
	// Somebody has the copy lose its place while it runs.
	at := len(second.log.String())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: clusterv1alpha1.AgentLease}}
	taken := []byte(`{"spec":{"holderIdentity":"somebody else","leaseDurationSeconds":1}}`)
	if err := s.edge.Patch(t.Context(), lease, client.RawPatch("application/merge-patch+json", taken)); err != nil {
		t.Fatal(err)
	}
	waits(second, at)
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	s.set(t, "two", "1")
	s.stands(t, "two", "1")
	s.reported(t, "two", 4)
	return again
}

func (s *stage) testCutOff(t *testing.T, p *process) {
	to := s.link.cut()
	since, before := time.Now(), len(p.log.String())
	for range 3 {
		s.tamper(t, "one")
		s.stands(t, "one", "1")
	}
	if err := s.edge.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "two"}}); err != nil {
		t.Fatal(err)
	}
	s.stands(t, "two", "1")
	// What was under way, then a look every 0.9 s at most, and no request besides. A slow
	// machine looks less often.
	if tries, most := s.link.tried(), 12+int(time.Since(since)/(800*time.Millisecond)); tries > most {
		t.Errorf("%d connections in %s to a hub that is away", tries, time.Since(since))
	}
	if log := p.log.String()[before:]; strings.Contains(log, "Work is tried again") {
		t.Errorf("a hub that is away is no fault of a Work:\n%s", log)
	}
	s.link.plug(to)
	eventually(t, "what was put back is told", func(ctx context.Context) error {
		w := &workv1alpha1.Work{}
		if err := s.env.Hub.Get(ctx, client.ObjectKey{Namespace: space(), Name: "two"}, w); err != nil {
			return err
		}
		if c := meta.FindStatusCondition(w.Status.Conditions, workv1alpha1.WorkDrifted); c == nil || c.Reason != workv1alpha1.WorkDriftRevertedReason {
			return fmt.Errorf("conditions: %v", w.Status.Conditions)
		}
		return nil
	})
}

func (s *stage) testStartAlone(t *testing.T, p *process) *process {
	to := s.link.cut()
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	s.tamper(t, "one")
	next := s.run(t, "--karmada-kubeconfig", filepath.Join(s.folder, "hub.kubeconfig"), "--cluster-lease-duration", "4s")
	s.stands(t, "one", "1")

	// Meanwhile, on the hub.
	for i := range 5 {
		s.set(t, "one", fmt.Sprint("hub-", i))
	}
	if err := s.env.Hub.Delete(t.Context(), work("three", "")); err != nil {
		t.Fatal(err)
	}
	s.stands(t, "three", "1")
	s.link.plug(to)
	s.stands(t, "one", "hub-4")
	s.stands(t, "three", "")
	eventually(t, "the work is gone", func(ctx context.Context) error {
		err := s.env.Hub.Get(ctx, client.ObjectKey{Namespace: space(), Name: "three"}, &workv1alpha1.Work{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
	s.reported(t, "one", 6)
	eventually(t, "the cluster is ready", s.ready)
	if log := next.log.String(); strings.Count(log, "msg=Applied") > 3 || strings.Contains(log, "hub-1") {
		t.Errorf("more was applied than the latest state:\n%s", log)
	}
	return next
}

func (s *stage) testHubRestarts(t *testing.T, p *process) {
	s.link.cut()
	s.lower(t)
	s.raise(t, s.dir)
	eventually(t, "the agent is there", func(context.Context) error {
		if strings.Count(p.log.String(), "The hub is there") < 2 {
			return errors.New("not yet")
		}
		return nil
	})
	s.set(t, "two", "after")
	s.stands(t, "two", "after")
	s.reported(t, "two", 2)
}

func (s *stage) testEmptyHub(t *testing.T, p *process) {
	s.link.cut()
	s.lower(t)
	other := t.TempDir()
	if err := os.CopyFS(filepath.Join(other, "pki"), os.DirFS(filepath.Join(s.dir, "pki"))); err != nil {
		t.Fatal(err)
	}
	s.raise(t, other)
	eventually(t, "the agent says that it knows another hub", func(context.Context) error {
		if log := p.log.String(); !strings.Contains(log, "another hub answers") && !strings.Contains(log, "does not say who it is any more") {
			return errors.New("not yet")
		}
		return nil
	})
	s.tamper(t, "one")
	s.stands(t, "one", "hub-4")
	s.stands(t, "two", "after")
	if err := s.env.Hub.Get(t.Context(), client.ObjectKey{Name: site1}, &clusterv1alpha1.Cluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("the agent wrote to a hub that it does not know: %v", err)
	}
	s.link.cut()
	s.lower(t)
	s.raise(t, s.dir)
	s.set(t, "one", "home")
	s.stands(t, "one", "home")
}

func (s *stage) testExpired(t *testing.T) {
	file := filepath.Join(s.folder, "hub.kubeconfig")
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	over := s.sign(t, identity.Agent(site1), time.Now().Add(-3*time.Minute), time.Now().Add(-time.Second))
	content, err := registration.Kubeconfig(cfg, site1, over)
	if err == nil {
		err = os.WriteFile(file, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := s.run(t, "--karmada-kubeconfig", file)
	s.set(t, "one", "renewed")
	s.stands(t, "one", "renewed")
	s.reported(t, "one", 1)
	eventually(t, "the agent says that it has another certificate", func(context.Context) error {
		if log := p.log.String(); !strings.Contains(log, "Renewed the certificate of the agent") {
			return errors.New(log)
		}
		return nil
	})
	if log := p.log.String(); strings.Contains(log, "PRIVATE KEY") {
		t.Errorf("the agent's log:\n%s", log)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	renewed, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if _, to, err := registration.Life(renewed.CertData); err != nil || time.Until(to) < 24*time.Hour {
		t.Errorf("the certificate that is kept is good until %s, %v", to, err)
	}
}

func (s *stage) testLeave(t *testing.T) *process {
	p := s.run(t, "--karmada-kubeconfig", filepath.Join(s.folder, "hub.kubeconfig"))
	eventually(t, "the cluster is ready", s.ready)
	s.leave(t)
	s.stands(t, "one", "")
	s.stands(t, "two", "")
	return p
}

// leave has the cluster leave, and waits until it has.
func (s *stage) leave(t *testing.T) {
	t.Helper()
	if err := s.env.Hub.Delete(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: site1}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster is gone", func(ctx context.Context) error {
		err := s.env.Hub.Get(ctx, client.ObjectKey{Name: site1}, &clusterv1alpha1.Cluster{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %w", err)
	})
}

// testBeside: the agent of a cluster that has left keeps nobody out, although nobody has
// told it, and it goes on.
func (s *stage) testBeside(t *testing.T, p *process) {
	with, hash := s.token(t)
	other := s.run(t, "--data-dir", t.TempDir(), "--bootstrap-token", with, "--hub-endpoint", s.link.address(), "--discovery-token-ca-cert-hash", hash)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the other agent's log:\n%s", other.log)
		}
	})
	eventually(t, "the cluster is ready", s.ready)
	s.leave(t)
	for _, agent := range []*process{p, other} {
		if err := agent.stop(); err != nil {
			t.Error(err)
		}
	}
}

// testAnew: a token that is given counts where the hub does not take the certificate that
// there is any more.
func (s *stage) testAnew(t *testing.T) *process {
	with, hash := s.token(t)
	anew := s.run(t, "--bootstrap-token", with, "--hub-endpoint", s.link.address(), "--discovery-token-ca-cert-hash", hash)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the agent's log:\n%s", anew.log)
		}
	})
	eventually(t, "the cluster is ready", s.ready)
	s.testCarry(t)
	return anew
}
