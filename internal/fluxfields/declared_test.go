package fluxfields_test

// use is what becomes of a field.
type use string

const (
	used    use = "used"
	refused use = "refused"
	ignored use = "without effect"
)

// row declares fields of one struct, and all that is below them.
type row struct {
	in     string // the struct, by its path from spec; empty for spec itself
	fields string // their names, between spaces; empty for all
	use    use
	why    string
	// refuses are the values of a used field that are refused, between spaces.
	refuses string
}

// kind is one of Flux's kinds that are served.
type kind struct {
	name string // with group and version
	pkg  string // of its Go type
	// folders have the loops that work for it.
	folders []string
	// refusal asks the loop that refuses; nil if none does.
	refusal refusal
	// choose are values that a loop goes on with, where any other would do for the schema.
	choose map[string]string
	rows   []row
}

// target are the fields by which objects are selected.
const target = "annotationSelector group kind labelSelector name namespace version"

var declared = []kind{
	{
		name: "GitRepository source.toolkit.fluxcd.io/v1", pkg: "github.com/fluxcd/source-controller/api/v1",
		folders: []string{"sources/repository", "policies/unserved"}, refusal: ofRepository,
		choose: map[string]string{"url": "http://127.0.0.1:1/fleet"},
		rows: []row{
			{fields: "ignore interval recurseSubmodules sparseCheckout[] suspend timeout url", use: used},
			{in: "ref", fields: "branch commit name semver tag", use: used},
			{in: "secretRef", fields: "name", use: used},
			{in: "proxySecretRef", fields: "name", use: used},
			{fields: "provider", use: used, refuses: "aws azure", why: "without credentials in `secretRef`; with such, they take a build for clouds"},
			{in: "include[]", fields: "fromPath toPath", use: used},
			{in: "include[].repository", fields: "name", use: used},
			{fields: "serviceAccountName", use: refused, why: "it is for identities of clouds"},
			{in: "verify", fields: "mode", use: used},
			{in: "verify.secretRef", fields: "name", use: used},
		},
	},
	{
		name: "OCIRepository source.toolkit.fluxcd.io/v1", pkg: "github.com/fluxcd/source-controller/api/v1",
		folders: []string{"sources/ocirepository", "policies/provenance", "policies/unserved"}, refusal: ofOCIRepository,
		choose: map[string]string{"url": "oci://127.0.0.1:1/fleet"},
		rows: []row{
			{fields: "ignore insecure interval serviceAccountName suspend timeout url", use: used},
			{in: "ref", fields: "digest semver semverFilter tag", use: used},
			{in: "layerSelector", fields: "mediaType operation", use: used},
			{in: "secretRef", fields: "name", use: used},
			{in: "certSecretRef", fields: "name", use: used},
			{fields: "provider", use: used, refuses: "aws azure gcp", why: "without a login or credentials in `secretRef`; credentials take a build for clouds"},
			{in: "proxySecretRef", fields: "name", use: used},
			{in: "verify", fields: "provider", use: used},
			{in: "verify.secretRef", fields: "name", use: used},
			{in: "verify.trustedRootSecretRef", fields: "name", use: used},
			{in: "verify.matchOIDCIdentity[]", fields: "issuer subject", use: used},
		},
	},
	{
		name: "Bucket source.toolkit.fluxcd.io/v1", pkg: "github.com/fluxcd/source-controller/api/v1",
		folders: []string{"sources/bucket", "policies/unserved"}, refusal: ofBucket,
		choose: map[string]string{"endpoint": "127.0.0.1:1", "bucketName": "fleet", "provider": "generic", "sts.provider": "ldap"},
		rows: []row{
			{fields: "bucketName endpoint ignore insecure interval prefix region suspend timeout", use: used},
			{in: "secretRef", fields: "name", use: used},
			{in: "certSecretRef", fields: "name", use: used},
			{in: "proxySecretRef", fields: "name", use: used},
			{fields: "provider", use: used, refuses: "aws azure gcp", why: "without credentials in `secretRef`; with such, `azure` and `gcp` take a build for clouds"},
			{in: "sts", fields: "endpoint", use: used},
			{in: "sts", fields: "provider", use: used, refuses: "aws", why: "it is for identities of clouds"},
			{in: "sts.secretRef", fields: "name", use: used},
			{in: "sts.certSecretRef", fields: "name", use: used},
			{fields: "serviceAccountName", use: refused, why: "it is for providers that are refused"},
		},
	},
	{
		name: "ExternalArtifact source.toolkit.fluxcd.io/v1", pkg: "github.com/fluxcd/source-controller/api/v1",
		folders: []string{"sources/externalartifact", "reconciler/origins"},
		rows: []row{
			{in: "sourceRef", fields: "apiVersion kind name namespace", use: used, why: "for `flotilla trace`; what is fetched is in its status"},
		},
	},
	{
		name: "Kustomization kustomize.toolkit.fluxcd.io/v1", pkg: "github.com/fluxcd/kustomize-controller/api/v1",
		folders: []string{"reconciler/apply", "reconciler/inventory", "sources/build"}, refusal: ofKustomization,
		choose: map[string]string{"sourceRef.kind": "GitRepository"},
		rows: []row{
			{fields: "buildMetadata[] components[] deletionPolicy force ignoreMissingComponents interval namePrefix nameSuffix path prune " +
				"retryInterval serviceAccountName suspend targetNamespace timeout wait", use: used},
			{in: "commonMetadata", fields: "annotations labels", use: used},
			{in: "dependsOn[]", fields: "name namespace readyExpr", use: used},
			{in: "healthCheckExprs[]", fields: "apiVersion current failed inProgress kind", use: used},
			{in: "healthChecks[]", fields: "apiVersion kind name namespace", use: used},
			{in: "ignore[]", fields: "paths[]", use: used},
			{in: "ignore[].target", fields: target, use: used},
			{in: "images[]", fields: "digest name newName newTag", use: used},
			{in: "patches[]", fields: "patch", use: used},
			{in: "patches[].target", fields: target, use: used},
			{in: "postBuild", fields: "substitute substituteStrategy", use: used},
			{in: "postBuild.substituteFrom[]", fields: "kind name optional", use: used},
			{in: "sourceRef", fields: "name namespace", use: used},
			{in: "sourceRef", fields: "kind", use: used},
			{in: "sourceRef", fields: "apiVersion", use: ignored, why: "it is that of the sources that are served"},
			{in: "decryption", fields: "provider", use: used},
			{in: "decryption.secretRef", fields: "name", use: used},
			{in: "decryption", fields: "serviceAccountName", use: refused, why: "it is for keys of clouds"},
			{in: "kubeConfig.secretRef", fields: "key name", use: used, why: "what stands in the kubeconfig alone counts: no programs, files or proxies, and no TLS that is not verified"},
			{in: "kubeConfig", fields: "configMapRef", use: refused, why: "it is for identities of clouds"},
		},
	},
	{
		name: "Alert notification.toolkit.fluxcd.io/v1beta3", pkg: "github.com/fluxcd/notification-controller/api/v1beta3",
		folders: []string{"reconciler/commitstatus", "reconciler/alerting", "policies/alerting"},
		rows: []row{
			{fields: "suspend", use: used},
			{in: "eventSources[]", fields: "kind matchLabels name namespace", use: used, why: "commit statuses are those of Kustomizations of the same namespace; Events name kinds that are not served"},
			{in: "providerRef", fields: "name", use: used},
			{in: "eventSources[]", fields: "apiVersion", use: ignored, why: "it is that of the kinds that are served"},
			{fields: "eventMetadata eventSeverity exclusionList[] inclusionList[] summary", use: used,
				why: "for messages; a commit needs its pending, its success and its failure"},
		},
	},
	{
		name: "Provider notification.toolkit.fluxcd.io/v1beta3", pkg: "github.com/fluxcd/notification-controller/api/v1beta3",
		folders: []string{"reconciler/commitstatus", "reconciler/alerting"}, refusal: ofProvider,
		choose: map[string]string{"type": "gitea"},
		rows: []row{
			{fields: "address commitStatusExpr suspend timeout", use: used},
			{fields: "type", use: used, why: "Events, `flotilla validate` and `flotilla status` name types that are not served"},
			{in: "certSecretRef", fields: "name", use: used},
			{in: "secretRef", fields: "name", use: used},
			{fields: "proxy proxySecretRef", use: refused, why: "for commit statuses, where the proxy would not be used; messages go by it"},
			{fields: "channel username", use: used, why: "for messages"},
			{fields: "interval", use: ignored, why: "as in Flux"},
			{fields: "serviceAccountName", use: ignored, why: "credentials come from `secretRef` alone"},
		},
	},
	{
		name: "Receiver notification.toolkit.fluxcd.io/v1", pkg: "github.com/fluxcd/notification-controller/api/v1",
		folders: []string{"sources/receiver", "policies/webhook"},
		rows: []row{
			{fields: "events[] interval resourceFilter suspend type", use: used},
			{in: "resources[]", fields: "filter matchLabels name namespace", use: used},
			{in: "resources[]", fields: "kind", use: used, why: "the condition names kinds that are not served"},
			{in: "resources[]", fields: "apiVersion", use: ignored, why: "it is that of the kinds that are served"},
			{in: "secretRef", fields: "name", use: used},
			{in: "oidcProviders[]", fields: "audience issuerURL", use: used},
			{in: "oidcProviders[].variables[]", fields: "expression name", use: used},
			{in: "oidcProviders[].validations[]", fields: "expression message", use: used},
		},
	},
}
