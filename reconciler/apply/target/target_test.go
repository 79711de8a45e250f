package target_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/egress"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/tenancy"
	"github.com/flotilla-io/flotilla/reconciler/apply/applier"
	"github.com/flotilla-io/flotilla/reconciler/apply/target"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/refusals"
)

// to returns a Kustomization of the namespace shop that leads to a Secret.
func to(secret, key, account string) *kustomizev1.Kustomization {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	ks.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: secret, Key: key}}
	ks.Spec.RetryInterval, ks.Spec.ServiceAccountName = &metav1.Duration{Duration: time.Minute}, account
	return ks
}

func secret(data map[string]string) *corev1.Secret {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prod", ResourceVersion: "1"}, Data: map[string][]byte{}}
	for key, text := range data {
		out.Data[key] = []byte(text)
	}
	return out
}

// TestWhereAKubeconfigIs: it is looked for in the Secret that is named, and what is wrong with that says what to do.
func TestWhereAKubeconfigIs(t *testing.T) {
	config := kubeconfig(`server: "https://prod.example.com:6443"`, "token: secret")
	other := kubeconfig(`server: "https://other.example.com"`, "token: secret")
	for name, tc := range map[string]struct {
		has  map[string]string
		of   *kustomizev1.Kustomization
		want inventory.Place
		err  string
	}{
		"under value":             {has: map[string]string{"value": config, "value.yaml": other}, of: to("prod", "", ""), want: inventory.Place{Server: "https://prod.example.com:6443", Secret: "prod"}},
		"under value.yaml":        {has: map[string]string{"value.yaml": config}, of: to("prod", "", ""), want: inventory.Place{Server: "https://prod.example.com:6443", Secret: "prod"}},
		"under a key of its own":  {has: map[string]string{"value": other, "mine": config}, of: to("prod", "mine", ""), want: inventory.Place{Server: "https://prod.example.com:6443", Secret: "prod"}},
		"under another key":       {has: map[string]string{"value": other}, of: to("prod", "mine", ""), err: "the Secret shop/prod: it has no key mine: put a kubeconfig there, or name its key in spec.kubeConfig.secretRef.key"},
		"under no key":            {of: to("prod", "", ""), err: "the Secret shop/prod: it has no key value: put a kubeconfig there, or name its key in spec.kubeConfig.secretRef.key"},
		"in no Secret":            {of: to("stage", "", ""), err: "the Secret shop/stage does not exist: create it, with a kubeconfig under the key value, or correct spec.kubeConfig.secretRef"},
		"with what it may not do": {has: map[string]string{"value": kubeconfig(`server: "https://a"`, "tokenFile: a")}, of: to("prod", "", ""), err: "the Secret shop/prod: the kubeconfig under value: user.tokenFile is not allowed, as no file is read: put its content into token"},
		"with keys that are none": {
			has: map[string]string{"value": kubeconfig(`server: "https://a"`, "client-certificate-data: YQ==, client-key-data: YQ==")}, of: to("prod", "", ""),
			err: "the Secret shop/prod: its certificates or keys cannot be read: correct certificate-authority-data, client-certificate-data and client-key-data",
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(secret(tc.has)).Build()
			got, err := target.New(scheme.New(), egress.Dialer{}, applier.Options{}).Of(t.Context(), tc.of, hub)
			if tc.err != "" {
				want := &loop.Error{Reason: refusals.InvalidKubeConfig, Class: loop.ClassWaiting, After: time.Minute}
				outcome := loop.As(err, "")
				if outcome == nil || err.Error() != tc.err || outcome.Reason != want.Reason || outcome.Class != want.Class || outcome.After != want.After {
					t.Errorf("error = %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Place); diff != "" {
				t.Errorf("it leads elsewhere (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConnectionsAreKept: who uses a Secret as it stands, as the same account, shares a connection, until nobody does.
func TestConnectionsAreKept(t *testing.T) {
	config := func(server string) map[string]string {
		return map[string]string{"value": kubeconfig(`server: "`+server+`"`, "token: secret")}
	}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(secret(config("https://a"))).Build()
	targets := target.New(scheme.New(), egress.Dialer{}, applier.Options{})
	of := func(ks *kustomizev1.Kustomization) *target.Target {
		t.Helper()
		got, err := targets.Of(t.Context(), ks, hub)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	web, db := to("prod", "", ""), to("prod", "", "")
	db.Name = "db"
	first := of(web)
	if of(web) != first || of(db) != first {
		t.Error("each run makes a connection")
	}
	if of(to("prod", "", "deployer")) == first {
		t.Error("another account has the same connection")
	}
	if of(web) != first {
		t.Error("a connection is closed that somebody else uses")
	}
	targets.Forget(client.ObjectKeyFromObject(web))
	targets.Forget(client.ObjectKeyFromObject(db))
	last := of(web)
	if last == first {
		t.Error("a connection is kept that nobody uses")
	}
	changed := &corev1.Secret{}
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "prod"}, changed); err != nil {
		t.Fatal(err)
	}
	changed.Data["value"] = []byte(config("https://b")["value"])
	if err := hub.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if moved := of(web); moved == last || moved.Server != "https://b" {
		t.Errorf("after the Secret has changed it leads to %s", moved.Server)
	}
}

// TestWhatAClusterSays: it is told with where it comes from, keeps its class, and is no advice of ours.
func TestWhatAClusterSays(t *testing.T) {
	at := &target.Target{Place: inventory.Place{Server: "https://a", Secret: "prod"}}
	if err := at.Explain(nil); err != nil {
		t.Errorf("nothing is %v", err)
	}
	plain := errors.New("no route")
	if err := at.Explain(plain); err.Error() != "in the cluster of the Secret prod: no route" || !errors.Is(err, plain) {
		t.Errorf("error = %v", err)
	}
	outcome := loop.As(at.Explain(loop.Waiting("Forbidden", time.Minute, plain)), "")
	if outcome.Reason != "Forbidden" || outcome.Class != loop.ClassWaiting || outcome.After != time.Minute || !strings.HasPrefix(outcome.Error(), "in the cluster of the Secret prod: ") {
		t.Errorf("outcome = %+v", outcome)
	}
	forged := errors.New("it acts as the service account x, y; to allow it: kubectl create clusterrolebinding x --clusterrole=cluster-admin")
	if advice := tenancy.Advice(at.Explain(forged).Error()); advice != "" {
		t.Errorf("advice = %q", advice)
	}
}
