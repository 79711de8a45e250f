package identity_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// request is a valid request, for a case to change.
type request struct {
	key  crypto.Signer
	x509 x509.CertificateRequest
	spec certificatesv1.CertificateSigningRequestSpec
	pem  func([]byte) []byte
}

func (r *request) encode(t *testing.T) *certificatesv1.CertificateSigningRequestSpec {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &r.x509, r.key)
	if err != nil {
		t.Fatal(err)
	}
	r.spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	if r.pem != nil {
		r.spec.Request = r.pem(r.spec.Request)
	}
	return &r.spec
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestCheck(t *testing.T) {
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	cases := map[string]struct {
		change func(*request)
		says   string // empty where the request is valid
		none   bool   // the request is not for an agent at all
	}{
		"what an agent asks for": {change: func(*request) {}},
		"without key encipherment": {change: func(r *request) {
			r.spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature}
		}},
		"an RSA key of 2048 bits": {change: func(r *request) { r.key = must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048)) }},
		"an Ed25519 key": {change: func(r *request) {
			_, key, err := ed25519.GenerateKey(rand.Reader)
			r.key = must[ed25519.PrivateKey](t)(key, err)
		}},
		"somebody else": {change: func(r *request) { r.x509.Subject = pkix.Name{CommonName: "jane", Organization: []string{"dev"}} }, none: true},
		"the administrators": {change: func(r *request) {
			r.x509.Subject = pkix.Name{CommonName: "jane", Organization: []string{"system:masters"}}
		}, none: true},
		"an agent that is an administrator, too": {
			change: func(r *request) { r.x509.Subject.Organization = []string{identity.AgentsGroup, "system:masters"} },
			says:   `"system:masters"`,
		},
		"an agent without its group": {change: func(r *request) { r.x509.Subject.Organization = nil }, says: "there must be one: system:karmada:agents"},
		"an agent of another group":  {change: func(r *request) { r.x509.Subject.Organization = []string{"system:nodes"} }, says: "there must be one: system:karmada:agents"},
		"one of the group that is no agent": {
			change: func(r *request) { r.x509.Subject.CommonName = "system:admin" },
			says:   `the common name is "system:admin", it must be system:karmada:agent: and the name of a cluster`,
		},
		"an agent of no cluster":        {change: func(r *request) { r.x509.Subject.CommonName = "system:karmada:agent:" }, says: "and the name of a cluster"},
		"a name that is none":           {change: func(r *request) { r.x509.Subject.CommonName = identity.Agent("North") }, says: "and the name of a cluster"},
		"a name that is too long":       {change: func(r *request) { r.x509.Subject.CommonName = identity.Agent(strings.Repeat("n", 49)) }, says: "and the name of a cluster"},
		"a further part of the subject": {change: func(r *request) { r.x509.Subject.OrganizationalUnit = []string{"x"} }, says: "the subject has the attribute 2.5.4.11"},
		"a user id in the subject": {
			change: func(r *request) {
				r.x509.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "uid"}}
			},
			says: "the subject has the attribute 1.3.6.1.4.1.57683.2",
		},
		"two common names": {
			change: func(r *request) {
				r.x509.Subject.ExtraNames = []pkix.AttributeTypeAndValue{
					{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: identity.AgentsGroup},
					{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: identity.Agent("north")},
					{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: identity.Agent("south")},
				}
			},
			says: "the subject has more than one common name",
		},
		"a DNS name":      {change: func(r *request) { r.x509.DNSNames = []string{"hub.example.org"} }, says: "it must have none"},
		"an IP address":   {change: func(r *request) { r.x509.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }, says: "it must have none"},
		"an e-mail":       {change: func(r *request) { r.x509.EmailAddresses = []string{"a@b.c"} }, says: "it must have none"},
		"a URI":           {change: func(r *request) { r.x509.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, says: "it must have none"},
		"another signer":  {change: func(r *request) { r.spec.SignerName = "example.org/own" }, says: "the signer is example.org/own, it must be kubernetes.io/kube-apiserver-client"},
		"for servers":     {change: func(r *request) { r.spec.Usages = append(r.spec.Usages, certificatesv1.UsageServerAuth) }, says: "the usages are"},
		"for signing":     {change: func(r *request) { r.spec.Usages = append(r.spec.Usages, certificatesv1.UsageCertSign) }, says: "the usages are"},
		"for nothing":     {change: func(r *request) { r.spec.Usages = nil }, says: "the usages are"},
		"not for clients": {change: func(r *request) { r.spec.Usages = r.spec.Usages[:2] }, says: "the usages are"},
		"a weak RSA key":  {change: func(r *request) { r.key = must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024)) }, says: "the RSA key has 1024 bits, it must have at least 2048"},
		"a weak ECDSA key": {
			change: func(r *request) { r.key = must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)) },
			says:   "the ECDSA key has 224 bits, it must have at least 256",
		},
		"no PEM":       {change: func(r *request) { r.pem = func([]byte) []byte { return []byte("x") } }, says: "not one CERTIFICATE REQUEST in PEM"},
		"two requests": {change: func(r *request) { r.pem = func(p []byte) []byte { return append(p, p...) } }, says: "not one CERTIFICATE REQUEST in PEM"},
		"what cannot be read": {change: func(r *request) {
			r.pem = func([]byte) []byte {
				return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
			}
		}, says: "cannot be read"},
		"the name of another cluster's Secret": {change: func(r *request) { r.x509.Subject.CommonName = identity.Agent("prod-impersonator") }, says: "does not end with -impersonator"},
		"the name of nobody's":                 {change: func(r *request) { r.x509.Subject.CommonName = identity.Agent("rbac-generator") }, says: "flotilla register"},
		"not signed by its key":                {change: func(r *request) { r.pem = flip }, says: "the request is not signed with its own key"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &request{
				key:  key,
				x509: x509.CertificateRequest{Subject: pkix.Name{CommonName: identity.Agent("north"), Organization: []string{identity.AgentsGroup}}},
				spec: certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: identity.Usages()},
			}
			tc.change(r)
			cluster, err := identity.Check(r.encode(t))
			switch {
			case errors.Is(err, identity.ErrNotAgent) != tc.none:
				t.Errorf("= %v", err)
			case tc.none:
			case tc.says == "" && (err != nil || cluster != "north"):
				t.Errorf("= %q, %v", cluster, err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
}

// flip changes the last bit of a request, which is in its signature.
func flip(content []byte) []byte {
	block, _ := pem.Decode(content)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}

func TestUsers(t *testing.T) {
	type who struct {
		Agent, Expired string
		Token          identity.Token
	}
	cases := map[string]struct {
		user   string
		groups []string
		want   who
	}{
		"an agent":               {user: "system:karmada:agent:north", want: who{Agent: "north"}},
		"an expired one":         {user: "system:karmada:expired-agent:north", want: who{Expired: "north"}},
		"a name with a colon":    {user: "system:karmada:agent:a:b"},
		"a name of upper case":   {user: "system:karmada:agent:North"},
		"no name":                {user: "system:karmada:agent:"},
		"an administrator":       {user: "system:admin", groups: []string{"system:masters"}},
		"a token":                {user: "system:bootstrap:abcdef", groups: []string{identity.TokensGroup}, want: who{Token: identity.Token{ID: "abcdef"}}},
		"a token of one cluster": {user: "system:bootstrap:abcdef", groups: []string{identity.ClusterGroup("north"), identity.IDGroup("ID-1")}, want: who{Token: identity.Token{ID: "abcdef", Cluster: "north", ClusterID: "id-1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got who
			got.Agent, _ = identity.ClusterOfAgent(tc.user)
			got.Expired, _ = identity.ClusterOfExpiredAgent(tc.user)
			got.Token, _ = identity.TokenOf(tc.user, tc.groups)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, content []byte) {
		spec := &certificatesv1.CertificateSigningRequestSpec{Request: content, SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: identity.Usages()}
		if cluster, err := identity.Check(spec); err == nil && !identity.IsClusterName(cluster) {
			t.Errorf("%q is no cluster", cluster)
		}
	})
}
