package providers_test

import (
	"errors"
	"testing"
	"time"

	notificationv1beta3 "github.com/fluxcd/notification-controller/api/v1beta3"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/reconciler/providers"
	"github.com/flotilla-io/flotilla/sources/forge"
)

const address = "https://git.example.com/team/app"

func provider(change ...func(*notificationv1beta3.ProviderSpec)) *notificationv1beta3.Provider {
	p := &notificationv1beta3.Provider{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "forge"},
		Spec:       notificationv1beta3.ProviderSpec{Type: "gitea", SecretRef: &meta.LocalObjectReference{Name: "token"}},
	}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// TestConnectionsAreKept for an object until something that they were made from has changed, or it is gone.
func TestConnectionsAreKept(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "token"}, Data: map[string][]byte{"token": []byte("a")}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(secret).Build()
	made := 0
	kept := providers.New(hub, func(p forge.Provider, _ time.Duration) (int, error) {
		made++
		return made, nil
	}, time.Minute)
	web, api := client.ObjectKey{Namespace: "team", Name: "web"}, client.ObjectKey{Namespace: "team", Name: "api"}
	of := func(owner client.ObjectKey, p *notificationv1beta3.Provider, address string) int {
		t.Helper()
		to, err := kept.Of(t.Context(), owner, p, address)
		if err != nil {
			t.Fatal(err)
		}
		return to
	}
	got := []int{of(web, provider(), address), of(web, provider(), address), of(api, provider(), address), of(web, provider(), address+"2")}
	secret.Data["token"] = []byte("b")
	if err := hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	got = append(got, of(web, provider(), address+"2"), of(api, provider(), address))
	kept.Forget(web)
	got = append(got, of(web, provider(), address+"2"), of(api, provider(), address))
	if diff := cmp.Diff([]int{1, 1, 2, 3, 4, 5, 6, 5}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProvidersThatAPersonHasToMend: each is of class loop.ClassStalled, and nothing is kept of it.
func TestProvidersThatAPersonHasToMend(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*notificationv1beta3.ProviderSpec)
		fails  bool
		want   string
	}{
		"its Secret is not there":  {change: func(s *notificationv1beta3.ProviderSpec) {}, want: "the Secret token does not exist: create it, or correct the Provider"},
		"its Secret cannot be one": {change: func(s *notificationv1beta3.ProviderSpec) { s.SecretRef.Name = "../token" }, want: `"../token" is no name of a Secret: it may not contain '/': correct the Provider`},
		"its certificates are not there": {change: func(s *notificationv1beta3.ProviderSpec) {
			s.SecretRef, s.CertSecretRef = nil, &meta.LocalObjectReference{Name: "ca"}
		}, want: "the Secret ca does not exist: create it, or correct the Provider"},
		"it asks for a proxy":           {change: func(s *notificationv1beta3.ProviderSpec) { s.Proxy = "http://127.0.0.1:1" }, want: "the Provider forge asks for a proxy, which is not supported yet: remove spec.proxySecretRef and spec.proxy"},
		"nothing speaks with that type": {change: func(s *notificationv1beta3.ProviderSpec) { s.SecretRef = nil }, fails: true, want: "no such type"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).Build()
			kept := providers.New(hub, func(forge.Provider, time.Duration) (string, error) {
				if tc.fails {
					return "", errors.New("no such type")
				}
				return "made", nil
			}, time.Minute)
			to, err := kept.Of(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, provider(tc.change), address)
			if outcome := loop.As(err, ""); to != "" || outcome == nil || outcome.Class != loop.ClassStalled || outcome.Error() != tc.want {
				t.Errorf("%q, %v, want %q", to, err, tc.want)
			}
		})
	}
}
