package tenants

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A field is one way out of a namespace, with what to write to try it. In its
// texts NAME is the name of what is written and TARGET what it reaches for.
type field struct {
	// path is "Kind path.to.field", as in the kind's definition, or says in words
	// what is tried.
	path string
	// over are the targets.
	over []string
	// manifest is written by the tenant; the first object of it is judged.
	manifest string
	// file is committed to the tenant's repository as NAME/object.yaml.
	file string
}

// Targets that are not the tenant's.
var (
	namespaces = []string{"blue", "default", "flux-system", "karmada-cluster", "karmada-es-east", "karmada-system", "kube-system"}
	accounts   = []string{"blue:deployer", "../../blue/serviceaccounts/deployer", "system:serviceaccount:blue:deployer", "nobody"}
	files      = []string{"../../blue/secrets/crown", "blue/crown", "..%2f..%2fblue%2fsecrets%2fcrown"}
)

// applied is a Kustomization of the tenant, with MORE lines in its spec.
const applied = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: red}
spec:
  interval: 10m
  retryInterval: 1s
  timeout: 10s
  prune: true
  path: ./NAME
  sourceRef: {kind: GitRepository, name: src}
`

const fetched = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: NAME, namespace: red}
spec:
  interval: 10m
  timeout: 5s
`

const pulled = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: NAME, namespace: red}
spec:
  interval: 10m
  timeout: 5s
`

const listed = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: {name: NAME, namespace: red}
spec:
  interval: 10m
  timeout: 5s
  bucketName: src
  insecure: true
`

const config = `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: NAMESPACE}
data: {from: red}
`

// inNamespace is config in a namespace.
func inNamespace(namespace string) string { return strings.ReplaceAll(config, "NAMESPACE", namespace) }

// bound is a binding of the tenant, with MORE lines in its spec.
const bound = `
apiVersion: work.karmada.io/v1alpha2
kind: ResourceBinding
metadata: {name: NAME, namespace: red}
spec:
  clusters: [{name: east}, {name: west}]
  propagateDeps: true
  conflictResolution: Overwrite
`

// accountLines lets a Kustomization act as the one account of the tenant that may do
// anything, or as the default one.
var accountLines = map[string]string{"the tenant's account": "  serviceAccountName: deployer\n", "the default account": ""}

// fields are all ways that are tried.
func fields(addresses []string) []field {
	out := []field{
		{path: "Kustomization spec.sourceRef.namespace", over: namespaces, manifest: strings.Replace(applied, "name: src}", "name: src, namespace: TARGET}", 1), file: inNamespace("red")},
		{path: "Kustomization spec.dependsOn[].namespace", over: namespaces, manifest: applied + "  dependsOn: [{name: app, namespace: TARGET}]\n", file: inNamespace("red")},
		{path: "Kustomization spec.dependsOn[].readyExpr", over: namespaces, manifest: applied + "  dependsOn: [{name: app, namespace: TARGET, readyExpr: 'int(string(dep)) == 1'}]\n", file: inNamespace("red")},
		{path: "Kustomization spec.serviceAccountName", over: accounts, manifest: applied + "  serviceAccountName: TARGET\n", file: inNamespace("red")},
		{path: "Kustomization spec.postBuild.substituteFrom[].name", over: files, manifest: applied + "  postBuild: {substituteFrom: [{kind: Secret, name: TARGET}]}\n", file: inNamespace("red")},
		{path: "Kustomization spec.decryption.secretRef", over: files, manifest: applied + "  decryption: {provider: sops, secretRef: {name: TARGET}}\n", file: inNamespace("red")},
		{path: "Kustomization spec.decryption.serviceAccountName", over: accounts, manifest: applied + "  decryption: {provider: sops, serviceAccountName: TARGET}\n", file: inNamespace("red")},
		{path: "Kustomization spec.kubeConfig.secretRef", over: files, manifest: applied + "  kubeConfig: {secretRef: {name: TARGET}}\n", file: inNamespace("red")},
		{path: "Kustomization spec.kubeConfig.configMapRef", over: files, manifest: applied + "  kubeConfig: {configMapRef: {name: TARGET}}\n", file: inNamespace("red")},
		{path: "GitRepository spec.url", over: addresses, manifest: fetched + "  url: http://TARGET/src.git\n"},
		{path: "GitRepository spec.url (SSH)", over: addresses, manifest: fetched + "  url: ssh://git@TARGET/src.git\n  secretRef: {name: ssh}\n"},
		{path: "GitRepository spec.secretRef", over: files, manifest: fetched + "  url: http://127.0.0.1:1/src.git\n  secretRef: {name: TARGET}\n"},
		{path: "GitRepository spec.proxySecretRef", over: files, manifest: fetched + "  url: http://127.0.0.1:1/src.git\n  proxySecretRef: {name: TARGET}\n"},
		{path: "GitRepository spec.proxySecretRef (address)", over: []string{"proxy"}, manifest: fetched + "  url: http://127.0.0.1:1/src.git\n  proxySecretRef: {name: TARGET}\n"},
		{path: "GitRepository spec.serviceAccountName", over: accounts, manifest: fetched + "  url: http://127.0.0.1:1/src.git\n  provider: generic\n  serviceAccountName: TARGET\n"},
		{path: "GitRepository spec.verify.secretRef", over: files, manifest: fetched + "  url: http://127.0.0.1:1/src.git\n  verify: {mode: HEAD, secretRef: {name: TARGET}}\n"},
		{path: "OCIRepository spec.url", over: addresses, manifest: pulled + "  url: oci://TARGET/src\n  insecure: true\n"},
		{path: "OCIRepository spec.url (TLS)", over: addresses, manifest: pulled + "  url: oci://TARGET/src\n"},
		{path: "OCIRepository spec.secretRef", over: files, manifest: pulled + "  url: oci://127.0.0.1:1/src\n  secretRef: {name: TARGET}\n"},
		{path: "OCIRepository spec.certSecretRef", over: files, manifest: pulled + "  url: oci://127.0.0.1:1/src\n  certSecretRef: {name: TARGET}\n"},
		{path: "OCIRepository spec.proxySecretRef", over: files, manifest: pulled + "  url: oci://127.0.0.1:1/src\n  proxySecretRef: {name: TARGET}\n"},
		{path: "OCIRepository spec.proxySecretRef (address)", over: []string{"proxy"}, manifest: pulled + "  url: oci://127.0.0.1:1/src\n  proxySecretRef: {name: TARGET}\n"},
		{path: "OCIRepository spec.serviceAccountName", over: accounts, manifest: pulled + "  url: oci://127.0.0.1:1/src\n  serviceAccountName: TARGET\n"},
		{path: "OCIRepository spec.verify.secretRef", over: files, manifest: pulled + "  url: oci://127.0.0.1:1/src\n  verify: {provider: cosign, secretRef: {name: TARGET}}\n"},
		{path: "OCIRepository spec.verify.trustedRootSecretRef", over: files, manifest: pulled + "  url: oci://127.0.0.1:1/src\n  verify: {provider: cosign, matchOIDCIdentity: [{issuer: '.*', subject: '.*'}], trustedRootSecretRef: {name: TARGET}}\n"},
		{path: "Bucket spec.endpoint", over: addresses, manifest: listed + "  endpoint: 'TARGET'\n"},
		{path: "Bucket spec.secretRef", over: files, manifest: listed + "  endpoint: 127.0.0.1:1\n  secretRef: {name: TARGET}\n"},
		{path: "Bucket spec.certSecretRef", over: files, manifest: listed + "  endpoint: 127.0.0.1:1\n  certSecretRef: {name: TARGET}\n"},
		{path: "Bucket spec.proxySecretRef", over: files, manifest: listed + "  endpoint: 127.0.0.1:1\n  proxySecretRef: {name: TARGET}\n"},
		{path: "Bucket spec.proxySecretRef (address)", over: []string{"proxy"}, manifest: listed + "  endpoint: 127.0.0.1:1\n  proxySecretRef: {name: TARGET}\n"},
		{path: "Bucket spec.serviceAccountName", over: accounts, manifest: listed + "  endpoint: 127.0.0.1:1\n  provider: aws\n  serviceAccountName: TARGET\n"},
		{path: "Bucket spec.sts.endpoint", over: addresses, manifest: listed + "  endpoint: 127.0.0.1:1\n  sts: {provider: ldap, endpoint: 'http://TARGET', secretRef: {name: sts}}\n"},
		{path: "Bucket spec.sts.secretRef", over: files, manifest: listed + "  endpoint: 127.0.0.1:1\n  sts: {provider: ldap, endpoint: 'http://127.0.0.1:1', secretRef: {name: TARGET}}\n"},
		{path: "Bucket spec.sts.certSecretRef", over: files, manifest: listed + "  endpoint: 127.0.0.1:1\n  sts: {provider: ldap, endpoint: 'http://127.0.0.1:1', secretRef: {name: sts}, certSecretRef: {name: TARGET}}\n"},
		{path: "a status that the tenant writes", over: namespaces, manifest: forgedStatus},
		{path: "ResourceBinding spec.resource.namespace", over: namespaces, manifest: bound + "  resource: {apiVersion: v1, kind: Secret, name: crown, namespace: TARGET}\n"},
		{path: "ResourceBinding spec.requiredBy[].namespace", over: namespaces, manifest: bound + "  resource: {apiVersion: v1, kind: ConfigMap, name: own, namespace: red}\n  requiredBy: [{name: app-deployment, namespace: TARGET, clusters: [{name: east}]}]\n"},
		{path: "ResourceBinding spec.replicaRequirements.namespace", over: namespaces, manifest: bound + "  resource: {apiVersion: v1, kind: ConfigMap, name: own, namespace: red}\n  replicaRequirements: {namespace: TARGET, resourceRequest: {cpu: 1m}}\n"},
		{path: "ResourceBinding metadata.annotations dependencies", over: namespaces, manifest: strings.Replace(bound, "namespace: red}", `namespace: red, annotations: {resourcebinding.karmada.io/dependencies: '[{"apiVersion":"v1","kind":"Secret","namespace":"TARGET","name":"crown"}]'}}`, 1) + "  resource: {apiVersion: v1, kind: ConfigMap, name: own, namespace: red}\n"},
		{path: "Work metadata.namespace", over: namespaces, manifest: work("TARGET")},
		{path: "Work spec.workload.manifests[].metadata.namespace", over: namespaces, manifest: work("red")},
		{path: "PropagationPolicy spec.resourceSelectors[].namespace", over: namespaces, manifest: selecting("PropagationPolicy", "  placement: {clusterAffinity: {clusterNames: [east, west]}}\n")},
		{path: "OverridePolicy spec.resourceSelectors[].namespace", over: namespaces, manifest: selecting("OverridePolicy", "  overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {attack: NAME}}]}}]\n")},
		{path: "Provider spec.address", over: addresses, manifest: provider("gitea", "  address: http://TARGET/red/src\n")},
		{path: "Provider spec.address (git-notes)", over: addresses, manifest: provider("git-notes", "  address: http://TARGET/src.git\n")},
		{path: "Provider spec.secretRef", over: files, manifest: provider("gitea", "  address: http://127.0.0.1:1/red/src\n  secretRef: {name: TARGET}\n")},
		{path: "Provider spec.certSecretRef", over: files, manifest: provider("gitea", "  address: http://127.0.0.1:1/red/src\n  certSecretRef: {name: TARGET}\n")},
		{path: "Provider spec.proxySecretRef", over: []string{"proxy"}, manifest: provider("gitea", "  address: http://127.0.0.1:1/red/src\n  proxySecretRef: {name: TARGET}\n")},
		{path: "Alert spec.eventSources[].namespace", over: namespaces, manifest: alert("TARGET", "commits")},
		{path: "Alert spec.providerRef", over: files, manifest: alert("red", "TARGET")},
		{path: "Receiver spec.secretRef", over: files, manifest: receiver("  type: github\n  secretRef: {name: TARGET}\n", "red")},
		{path: "Receiver spec.resources[].namespace", over: namespaces, manifest: receiver("  type: github\n  secretRef: {name: token}\n", "TARGET")},
		{path: "Receiver spec.oidcProviders[].issuerURL", over: addresses, manifest: receiver("  type: generic-oidc\n  oidcProviders: [{issuerURL: 'http://TARGET', validations: [{expression: 'true', message: no}]}]\n", "red")},
		{path: "Gateway spec.listeners[].tls.certificateRefs[].namespace", over: namespaces, manifest: gateway},
	}
	for who, lines := range accountLines {
		committed := func(what string, over []string, file string) {
			out = append(out, field{path: "a commit with " + what + ", as " + who, over: over, manifest: applied + lines, file: file})
		}
		committed("an object of a namespace", namespaces, inNamespace("TARGET"))
		committed("a role for its author", append(slices.Clone(namespaces), "red"), grant)
		committed("an object without a namespace", scoped, "TARGET")
		out = append(out,
			field{path: "Kustomization spec.targetNamespace, as " + who, over: namespaces, manifest: applied + lines + "  targetNamespace: TARGET\n", file: inNamespace("")},
			field{path: "Kustomization spec.healthChecks[].namespace, as " + who, over: namespaces, manifest: applied + lines + healthChecks, file: inNamespace("red")},
		)
	}
	return out
}

// harmless are fields that look as if they led out of a namespace.
var harmless = map[string]string{
	"Kustomization spec.ignore[].target.namespace":  "selects among what the build made",
	"Kustomization spec.patches[].target.namespace": "selects among what the build made",
	"Kustomization spec.kubeConfig":                 "its two fields are tried",
	"Kustomization spec.sourceRef":                  "its namespace is tried",
	"GitRepository spec.ref":                        "names a branch, tag or commit",
	"OCIRepository spec.ref":                        "names a tag or a digest",
	"ExternalArtifact spec.sourceRef":               "is for people; its status, which tenants do not write, says what is fetched",
	"ExternalArtifact spec.sourceRef.namespace":     "is for people",
	"Provider spec.serviceAccountName":              "means nothing here",
	"CronFederatedHPA spec.scaleTargetRef":          "no loop reads the kind",
	"FederatedHPA spec.scaleTargetRef":              "no loop reads the kind",
	"MultiClusterIngress spec.rules[].host":         "no loop reads the kind",
	"MultiClusterIngress spec.tls[].hosts":          "no loop reads the kind",
	"MultiClusterIngress spec.tls[].secretName":     "no loop reads the kind",
}

// leads reports by its name whether a field refers to something.
var leads = regexp.MustCompile(`(?i)(namespace|url|address|ref|refs|secretname|serviceaccountname|endpoint|kubeconfig|hosts?)$`)

// everyField fails for a field that refers to something, of a kind that a
// tenant may write, which nobody has thought of.
func everyField(t *testing.T) {
	t.Helper()
	tried := map[string]bool{}
	for _, f := range fields(nil) {
		path, _, _ := strings.Cut(f.path, " (")
		path, _, _ = strings.Cut(path, ", as ")
		tried[path] = true
	}
	found := referring(t)
	for _, path := range found {
		if !tried[path] && harmless[path] == "" {
			t.Errorf("%s refers to something: try it in fields, or say why it is harmless", path)
		}
	}
	for path := range harmless {
		if !slices.Contains(found, path) {
			t.Errorf("%s is said to be harmless, and there is no such field that a tenant may write", path)
		}
	}
	t.Logf("%d fields refer to something", len(found))
}

// referring lists the fields by which a tenant's objects refer to something.
func referring(t *testing.T) []string {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := the.hub.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, crd := range list.Items {
		if crd.Spec.Scope != apiextensionsv1.NamespaceScoped || !mayCreate(t.Context(), t, &crd) {
			continue
		}
		for _, version := range crd.Spec.Versions {
			if !version.Storage || version.Schema == nil {
				continue
			}
			if spec, ok := version.Schema.OpenAPIV3Schema.Properties["spec"]; ok {
				out = append(out, walk(&spec, crd.Spec.Names.Kind+" spec")...)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// walk lists the fields below path that refer to something.
func walk(schema *apiextensionsv1.JSONSchemaProps, path string) []string {
	var out []string
	for name, property := range schema.Properties {
		below := path + "." + name
		if property.Items != nil && property.Items.Schema != nil {
			out = append(out, walk(property.Items.Schema, below+"[]")...)
			if leads.MatchString(name) && len(property.Items.Schema.Properties) > 0 {
				below += "[]"
			}
		}
		if leads.MatchString(name) {
			out = append(out, below)
		}
		out = append(out, walk(&property, below)...)
	}
	return out
}

// mayCreate reports whether the tenant may make objects of a kind.
func mayCreate(ctx context.Context, t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: tenant, Verb: "create", Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural},
	}}
	if err := the.red.Create(ctx, review, &client.CreateOptions{}); err != nil {
		t.Fatal(fmt.Errorf("may the tenant create %s: %w", crd.Name, err))
	}
	return review.Status.Allowed
}
