package tenants

// What a Kustomization of the tenant refers to, to have it shown in a report.
const healthChecks = `  healthChecks: [{apiVersion: v1, kind: Secret, name: crown, namespace: TARGET}]
  healthCheckExprs: [{apiVersion: v1, kind: Secret, current: 'int(string(data.token)) == 1'}]
`

// grant makes the tenant an administrator, of a namespace or of all.
const grant = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: NAME, namespace: TARGET}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: red}]
`

// scoped are objects that have no namespace, each of which would reach everybody.
var scoped = []string{`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: red}]
`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
`, `
apiVersion: v1
kind: Namespace
metadata: {name: NAME}
`, `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: NAME}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: blue}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
`, `
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: NAME}
spec:
  overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {attack: NAME}}]}}]
`, `
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: NAME}
spec: {syncMode: Pull}
`, `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: NAME}
spec:
  target: {apiVersion: v1, kind: ConfigMap}
  customizations: {dependencyInterpretation: {luaScript: 'function GetDependencies(o) return {} end'}}
`, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: NAME}
webhooks:
  - name: attack.example.com
    clientConfig: {url: "https://127.0.0.1:1/"}
    rules: [{apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: [CREATE]}]
    sideEffects: None
    admissionReviewVersions: [v1]
    failurePolicy: Ignore
`, `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: NAME}
value: 1000
`, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: attacks.NAME.example.com}
spec:
  group: NAME.example.com
  scope: Namespaced
  names: {kind: Attack, plural: attacks}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, `
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: NAME}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: blue, name: web}]}
`}

// forgedStatus is a Kustomization that says that it owns what is another's. It is
// deleted, so that it prunes.
const forgedStatus = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: NAME, namespace: red}
spec:
  interval: 10m
  prune: true
  path: ./NAME
  sourceRef: {kind: GitRepository, name: src}
status:
  inventory:
    entries:
      - {id: TARGET_crown__Secret, v: v1}
      - {id: TARGET_app_kustomize.toolkit.fluxcd.io_Kustomization, v: v1}
`

// gateway refers to a certificate, for which nobody has granted it leave.
const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: NAME, namespace: red, labels: {carry: "yes"}}
spec:
  gatewayClassName: any
  listeners: [{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{kind: Secret, name: crown, namespace: TARGET}]}}]
`

// gatewayKind is as much of the definition of Gateways as it takes.
const gatewayKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gateways.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/gateway-api/pull/1923"}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {kind: Gateway, plural: gateways}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func work(namespace string) string {
	return `
apiVersion: work.karmada.io/v1alpha1
kind: Work
metadata: {name: NAME, namespace: ` + namespace + `}
spec:
  workload:
    manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME, namespace: TARGET}, data: {from: red}}
`
}

func selecting(kind, lines string) string {
	return `
apiVersion: policy.karmada.io/v1alpha1
kind: ` + kind + `
metadata: {name: NAME, namespace: red}
spec:
  resourceSelectors: [{apiVersion: v1, kind: Secret, namespace: TARGET}]
` + lines
}

// provider is one that a Kustomization of the tenant reports to.
func provider(kind, lines string) string {
	return `
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: NAME, namespace: red}
spec:
  type: ` + kind + `
` + lines + `---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: NAME, namespace: red}
spec:
  providerRef: {name: NAME}
  eventSources: [{kind: Kustomization, name: "*"}]
`
}

func alert(namespace, provider string) string {
	return `
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: NAME, namespace: red}
spec:
  providerRef: {name: ` + provider + `}
  eventSources: [{kind: Kustomization, name: "*", namespace: ` + namespace + `}]
`
}

// receiver is a Receiver of the tenant that names a source of a namespace.
func receiver(lines, namespace string) string {
	return `
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: {name: NAME, namespace: red}
spec:
` + lines + `  resources: [{kind: GitRepository, name: src, namespace: ` + namespace + `}]
`
}

// setting is what the administrator prepares: two tenants and what is theirs. CROWN
// is the secret that must not be seen elsewhere, URL that of a repository, and IDENTITY
// a key for SSH.
const setting = `
apiVersion: v1
kind: Namespace
metadata: {name: red}
---
apiVersion: v1
kind: Namespace
metadata: {name: blue}
---
apiVersion: v1
kind: Namespace
metadata: {name: flux-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: red, namespace: red}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: red}, {kind: ServiceAccount, name: deployer, namespace: red}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gateways, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}}
rules: [{apiGroups: [gateway.networking.k8s.io], resources: [gateways], verbs: ["*"]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer, namespace: red}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: blue, namespace: blue}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: blue}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: deployer, namespace: blue}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: own, namespace: red}
data: {from: red}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: src, namespace: red}
spec: {url: "URL", interval: 1h, ref: {branch: main}}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: {name: commits, namespace: red}
spec: {type: git-notes}
---
apiVersion: v1
kind: Secret
metadata: {name: proxy, namespace: red}
stringData: {address: "http://CANARY"}
---
apiVersion: v1
kind: Secret
metadata: {name: sts, namespace: red}
stringData: {username: red, password: red}
---
apiVersion: v1
kind: Secret
metadata: {name: ssh, namespace: red}
stringData:
  identity: |
IDENTITY
  known_hosts: "* ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKe2mPsSjwe9UKmzqHfZAgVqgFS5zFJ1G6fF8tYgJ0Xr"
---
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: edge}
spec: {syncMode: Pull}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: gateways, namespace: red}
spec:
  propagateDeps: true
  conflictResolution: Overwrite
  resourceSelectors: [{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
`

// belongings are what every namespace but the tenant's has that it could reach for.
const belongings = `
apiVersion: v1
kind: Secret
metadata: {name: crown, namespace: NAMESPACE}
stringData: {token: CROWN, address: "http://CROWN", username: CROWN, password: CROWN}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: src, namespace: NAMESPACE}
spec: {url: "URL", interval: 1h, ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: NAMESPACE, annotations: {note: CROWN}}
spec: {suspend: true, interval: 1h, prune: true, path: ./app, sourceRef: {kind: GitRepository, name: src}}
`
