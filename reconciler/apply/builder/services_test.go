package builder

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/internal/places"
	"github.com/flotilla-io/flotilla/sources/build"
	"github.com/flotilla-io/flotilla/sources/sops"
)

// vault opens the keys that e2e/sops wrote for Vault, with a token, and knows whether its tenant waits for it.
type vault struct {
	token   string
	waiting func()
}

func (v vault) Unwrap(_ context.Context, of sops.Recipient) ([]byte, error) {
	v.waiting()
	if v.token != "hvs.token" {
		return nil, errors.New("Vault refuses the token")
	}
	return base64.StdEncoding.DecodeString(strings.TrimPrefix(of.Wrapped, "vault:v1:"))
}

// TestFilesOfServices opens files by a service, with what the Secret has for it, and says what is in the way.
func TestFilesOfServices(t *testing.T) {
	for name, tc := range map[string]struct{ token, want string }{
		"a token that counts": {token: "hvs.token"},
		"another one": {token: "other", want: "db.yaml: no key decrypts it: it is encrypted for Vault https://vault.example.com:8200/v1/teams/shop/keys/flux: " +
			"Vault refuses the token (Secret team/sops)"},
	} {
		t.Run(name, func(t *testing.T) {
			all := places.New(places.Options{Shared: 1})
			ctx, end := all.Start(t.Context(), "team")
			defer end()
			ctx, leave, err := places.Compute(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer leave()
			free := func() { // the tenant can compute while a service is asked
				other, ends := all.Start(t.Context(), "team")
				defer ends()
				soon, cancel := context.WithTimeout(other, 5*time.Second)
				defer cancel()
				_, leaves, err := places.Compute(soon)
				if err != nil {
					t.Errorf("the place is taken: %v", err)
					return
				}
				leaves()
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sops"}, Data: map[string][]byte{"sops.vault-token": []byte(tc.token)}}
			in := Input{Kustomization: encrypted(), As: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(secret).Build(), Retry: time.Minute}
			opts := Options{Services: func(secret map[string][]byte) sops.Service { return vault{string(secret["sops.vault-token"]), free} }}
			objects, _, err := opts.objects(ctx, build.New(build.Limits{}), build.NewTree(map[string][]byte{"db.yaml": []byte(fixture(t, "vault.yaml"))}), in)
			if tc.want != "" {
				if is := loop.As(classifyBuild(in, err), ""); is == nil || is.Class != loop.ClassWaiting || is.Err.Error() != tc.want {
					t.Errorf("error %v, want %s", err, tc.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decryptedDB, inText(t, objects)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAKeyOfVaultAlone says that another key is needed, where a Secret has none of its own.
func TestAKeyOfVaultAlone(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "sops"}, Data: map[string][]byte{"sops.vault-token": []byte("x")}}
	in := Input{Kustomization: encrypted(), As: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(secret).Build(), Retry: time.Minute}
	_, err := FromFiles(t.Context(), build.New(build.Limits{}), build.NewTree(map[string][]byte{"db.yaml": []byte(fixture(t, "secret.yaml"))}), in)
	const want = ", and the Secret team/sops has no age or OpenPGP key: add the one that is missing, or add a recipient with sops updatekeys"
	if err == nil || !strings.HasPrefix(err.Error(), "db.yaml: no key decrypts it: it is encrypted for age1") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v", err)
	}
}
