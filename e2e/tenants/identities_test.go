package tenants

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
)

// stolen is an identity whose credentials may be stolen, with all that it may do beyond
// what everybody may, as "verb resource.group namespace/name".
type stolen struct {
	rest.ImpersonationConfig
	may []string
}

var identitiesOf = map[string]stolen{
	"the agent of a cluster": {
		rest.ImpersonationConfig{UserName: "system:karmada:agent:edge", Groups: []string{"system:karmada:agents", "system:authenticated"}},
		[]string{
			"create certificatesigningrequests.certificates.k8s.io",
			"create clusters.cluster.karmada.io",
			"create configmaps karmada-es-edge", // of one name: reconciler/agents TestAgentsAreHeldToTheirOwn
			"create events default",
			"create events karmada-es-edge",
			"create leases.coordination.k8s.io karmada-cluster",
			"create secrets karmada-cluster",
			"delete clusters.cluster.karmada.io edge",
			"delete leases.coordination.k8s.io karmada-cluster/edge",
			"delete secrets karmada-cluster/edge",
			"get certificatesigningrequests.certificates.k8s.io crown",
			"get certificatesigningrequests.certificates.k8s.io east",
			"get certificatesigningrequests.certificates.k8s.io edge",
			"get clusters.cluster.karmada.io edge",
			"get clusters/status.cluster.karmada.io edge",
			"get leases.coordination.k8s.io karmada-cluster/edge",
			"get resourceinterpretercustomizations.config.karmada.io crown",
			"get resourceinterpretercustomizations.config.karmada.io east",
			"get resourceinterpretercustomizations.config.karmada.io edge",
			"get resourceinterpreterwebhookconfigurations.config.karmada.io crown",
			"get resourceinterpreterwebhookconfigurations.config.karmada.io east",
			"get resourceinterpreterwebhookconfigurations.config.karmada.io edge",
			"get secrets karmada-cluster/edge",
			"get works.work.karmada.io karmada-es-edge/crown",
			"get works.work.karmada.io karmada-es-edge/east",
			"get works.work.karmada.io karmada-es-edge/edge",
			"get works/status.work.karmada.io karmada-es-edge/crown",
			"get works/status.work.karmada.io karmada-es-edge/east",
			"get works/status.work.karmada.io karmada-es-edge/edge",
			"list resourceinterpretercustomizations.config.karmada.io",
			"list resourceinterpreterwebhookconfigurations.config.karmada.io",
			"list works.work.karmada.io karmada-es-edge",
			"patch clusters.cluster.karmada.io edge",
			"patch clusters/status.cluster.karmada.io edge",
			"patch events default/crown",
			"patch events default/east",
			"patch events default/edge",
			"patch events karmada-es-edge/crown",
			"patch events karmada-es-edge/east",
			"patch events karmada-es-edge/edge",
			"patch leases.coordination.k8s.io karmada-cluster/edge",
			"patch secrets karmada-cluster/edge",
			"patch works.work.karmada.io karmada-es-edge/crown",
			"patch works.work.karmada.io karmada-es-edge/east",
			"patch works.work.karmada.io karmada-es-edge/edge",
			"patch works/status.work.karmada.io karmada-es-edge/crown",
			"patch works/status.work.karmada.io karmada-es-edge/east",
			"patch works/status.work.karmada.io karmada-es-edge/edge",
			"update clusters.cluster.karmada.io edge",
			"update clusters/status.cluster.karmada.io edge",
			"update leases.coordination.k8s.io karmada-cluster/edge",
			"update secrets karmada-cluster/edge",
			"update works.work.karmada.io karmada-es-edge/crown",
			"update works.work.karmada.io karmada-es-edge/east",
			"update works.work.karmada.io karmada-es-edge/edge",
			"update works/status.work.karmada.io karmada-es-edge/crown",
			"update works/status.work.karmada.io karmada-es-edge/east",
			"update works/status.work.karmada.io karmada-es-edge/edge",
		},
	},
	"a bootstrap token": {
		rest.ImpersonationConfig{UserName: "system:bootstrap:abcdef", Groups: []string{"system:bootstrappers", "system:bootstrappers:karmada:default-cluster-token", "system:authenticated"}},
		[]string{
			"create certificatesigningrequests.certificates.k8s.io",
			"get certificatesigningrequests.certificates.k8s.io crown",
			"get certificatesigningrequests.certificates.k8s.io east",
			"get certificatesigningrequests.certificates.k8s.io edge",
		},
	},
	"the default account of a namespace": {
		rest.ImpersonationConfig{UserName: "system:serviceaccount:blue:default", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:blue", "system:authenticated"}},
		[]string{},
	},
}

// identities asks for each stolen identity whether it may do anything that there is to
// do, with objects of its own cluster and of others, in every namespace.
func identities(t *testing.T) {
	resources := everyResource(t)
	everybody := the.rights(t, resources, rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}})
	for who, identity := range identitiesOf {
		t.Run(who, func(t *testing.T) {
			got := the.rights(t, resources, identity.ImpersonationConfig)
			got = slices.DeleteFunc(got, func(right string) bool { return slices.Contains(everybody, right) })
			if diff := cmp.Diff(identity.may, got); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an account of a member", memberAccount)
	t.Run("the agent of a cluster, in the name of another", agentOfAnother)
}

// ofAnother are what an agent has the right to make, as far as roles can say: of its own
// cluster. Admission holds it to that.
const ofAnother = `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: attack-cluster}
spec: {syncMode: Pull}
---
apiVersion: v1
kind: Secret
metadata: {name: attack-secret, namespace: karmada-cluster}
---
apiVersion: v1
kind: Secret
metadata: {name: west-impersonator, namespace: karmada-cluster}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: attack-lease, namespace: karmada-cluster}
---
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: attack-request}
spec: {signerName: kubernetes.io/kube-apiserver-client, usages: [client auth], request: REQUEST}
`

// agentOfAnother writes as an agent what is another cluster's.
func agentOfAnother(t *testing.T) {
	config, err := the.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate = identitiesOf["the agent of a cluster"].ImpersonationConfig
	agent, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range parse(t, strings.ReplaceAll(ofAnother, "REQUEST", request(t))) {
		if err := agent.Create(t.Context(), obj); !refusal(err) {
			t.Errorf("%s %s: %v, want a refusal", obj.GetKind(), obj.GetName(), err)
		}
	}
}

// request is one for the certificate of another cluster's agent.
func request(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:karmada:agent:east", Organization: []string{"system:karmada:agents"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// memberAccount: what a member's own token says counts in the member alone.
func memberAccount(t *testing.T) {
	config, err := the.Members["east"].Config()
	if err != nil {
		t.Fatal(err)
	}
	member, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := member.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hub, err := the.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	anonymous := rest.AnonymousClientConfig(hub)
	anonymous.BearerToken = request.Status.Token
	hubAsMember, err := discovery.NewDiscoveryClientForConfig(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	var status int
	hubAsMember.RESTClient().Get().AbsPath("/api").Do(t.Context()).StatusCode(&status)
	if status != http.StatusUnauthorized {
		t.Errorf("status %d, want %d", status, http.StatusUnauthorized)
	}
}

var (
	verbs  = []string{"get", "list", "create", "update", "patch", "delete"}
	others = []string{"crown", "east", "edge"}
)

// rights lists what an identity may do.
func (w *world) rights(t *testing.T, resources []metav1.APIResource, who rest.ImpersonationConfig) []string {
	t.Helper()
	config, err := w.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	config.Impersonate, config.QPS = who, -1
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		out   = []string{}
		group sync.WaitGroup
	)
	ask := func(ctx context.Context, a authorizationv1.ResourceAttributes) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		answer, err := hub.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
		} else if answer.Status.Allowed {
			out = append(out, describe(a))
		}
	}
	places := make(chan struct{}, 8)
	for _, resource := range resources {
		for _, a := range attempts(resource) {
			places <- struct{}{}
			group.Go(func() {
				defer func() { <-places }()
				ask(t.Context(), a)
			})
		}
	}
	group.Wait()
	slices.Sort(out)
	return out
}

// attempts are all that there is to be tried with a resource.
func attempts(resource metav1.APIResource) []authorizationv1.ResourceAttributes {
	where := []string{""}
	if resource.Namespaced {
		where = append(slices.Clone(namespaces), tenant, "karmada-es-edge")
	}
	name, subresource, _ := strings.Cut(resource.Name, "/")
	var out []authorizationv1.ResourceAttributes
	for _, namespace := range where {
		for _, verb := range verbs {
			if !slices.Contains(resource.Verbs, verb) {
				continue
			}
			names := others
			if verb == "list" || verb == "create" && subresource == "" {
				names = []string{""}
			}
			for _, object := range names {
				out = append(out, authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: resource.Group, Resource: name, Subresource: subresource, Name: object,
				})
			}
		}
	}
	return out
}

func describe(a authorizationv1.ResourceAttributes) string {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Group != "" {
		resource += "." + a.Group
	}
	return strings.TrimSpace(a.Verb + " " + resource + " " + strings.Trim(a.Namespace+"/"+a.Name, "/"))
}

// everyResource lists all resources and subresources that the control plane serves.
func everyResource(t *testing.T) []metav1.APIResource {
	t.Helper()
	config, err := the.Hub.Config()
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := kinds.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var out []metav1.APIResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			resource.Group = gv.Group
			if key := resource.Name + "." + gv.Group; !seen[key] {
				seen[key] = true
				out = append(out, resource)
			}
		}
	}
	return out
}
