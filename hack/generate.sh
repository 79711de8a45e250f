#!/usr/bin/env bash
# Writes all that is generated: under api/ deep copies, OpenAPI definitions,
# CustomResourceDefinitions and code of protobuf messages, and docs/flags.md. Tools and
# their versions: hack/tools.mod, and hack/protos/go.mod for protobuf.
set -euo pipefail
cd "$(dirname "$0")/.."

module=github.com/flotilla-io/flotilla
header=hack/boilerplate.go.txt
crd_groups=(apps autoscaling config gitops multicluster networking policy remedy work)
flux=(
  github.com/fluxcd/kustomize-controller/api/v1
  github.com/fluxcd/notification-controller/api/v1
  github.com/fluxcd/notification-controller/api/v1beta3
  github.com/fluxcd/source-controller/api/v1
)

crd_paths=("${crd_groups[@]/#/paths=./api/}")
crd_paths=("${crd_paths[@]/%//...}")

tool() { go tool -modfile=hack/tools.mod "$@"; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

tool controller-gen "object:headerFile=$header" paths=./api/...

tool openapi-gen --go-header-file "$header" \
  --output-dir api/openapi --output-pkg "$module/api/openapi" \
  --output-file zz_generated.openapi.go \
  --output-model-name-file zz_generated.model_name.go \
  --report-filename "$scratch/violations" \
  ./api/cluster/v1alpha1 ./api/policy/v1alpha1 ./api/search/v1alpha1 ./api/work/v1alpha1 ./api/work/v1alpha2
# Types of Kubernetes are known by their model names, which the generator only
# looks up in packages that it writes.
perl -pi -e 's{"k8s\.io/(api|apimachinery)/([^"]+)"}{(my $p = "io.k8s.$1.$2") =~ tr:/:.:; "\"$p\""}ge unless /^\t\S* ?"k8s/' \
  api/openapi/zz_generated.openapi.go

# Descriptions are what `kubectl explain` prints. Ours are short; the limit is
# for those that come with types of Kubernetes.
tool controller-gen crd:maxDescLen=400 "${crd_paths[@]}" "output:crd:dir=$scratch/own"
tool controller-gen crd:maxDescLen=400 "${flux[@]/#/paths=}" "output:crd:dir=$scratch/flux"
go run ./hack/crds -own "$scratch/own" -flux "$scratch/flux" -out api/crds/bases

(cd hack/protos && go run . -root ../.. api/estimator/estimator.proto api/estimator/service.proto)

go run ./cmd/flotillad flags >"$scratch/flags.md"
cp "$scratch/flags.md" docs/flags.md
