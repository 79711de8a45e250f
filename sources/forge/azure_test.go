package forge_test

import (
	"strings"
	"testing"

	"github.com/flotilla-io/flotilla/sources/forge"
)

const azureBody = `{"state":"failed","description":"2/3 clusters ready: eu-3 waits","targetUrl":"https://hub.example.com/x","context":{"genre":"fluxcd","name":"kustomization/web/1a2b3c4d"}}`

func azureRequest(host, project string) request {
	return request{
		Method: "POST", Host: host, Target: project + "/_apis/git/repositories/fleet/commits/" + commit + "/statuses?api-version=7.1",
		Header: asked(basic("", canary), "X-Tfs-Fedauthredirect", "Suppress"), Body: azureBody,
	}
}

func TestPostAzureDevOps(t *testing.T) {
	const public = "dev.azure.com"
	in := func(state string) request {
		want := azureRequest(public, "/org/shop")
		want.Body = `{"state":"` + state + `","context":{"genre":"fluxcd","name":"x"}}`
		return want
	}
	cases := map[string]posting{
		"as for a clone":                           {address: "https://dev.azure.com/org/shop/_git/fleet", status: web, want: azureRequest(public, "/org/shop")},
		"with the organization as the user":        {address: "https://org@dev.azure.com/org/shop/_git/fleet", status: web, want: azureRequest(public, "/org/shop")},
		"without encryption":                       {address: "http://dev.azure.com/org/shop/_git/fleet", status: web, want: azureRequest(public, "/org/shop")},
		"a project with a space":                   {address: "https://dev.azure.com/org/My%20Shop/_git/fleet", status: web, want: azureRequest(public, "/org/My%20Shop")},
		"a project by the name of the repository":  {address: "https://dev.azure.com/org/_git/fleet", status: web, want: azureRequest(public, "/org/fleet")},
		"by the name of before":                    {address: "https://org.visualstudio.com/shop/_git/fleet", status: web, want: azureRequest("org.visualstudio.com", "/shop")},
		"by the name of before, with a collection": {address: "https://org.visualstudio.com/DefaultCollection/shop/_git/fleet", status: web, want: azureRequest("org.visualstudio.com", "/DefaultCollection/shop")},
		"by the name of before, without a project": {address: "https://org.visualstudio.com/_git/fleet", status: web, want: azureRequest("org.visualstudio.com", "/fleet")},
		"a pending one":                            {address: "https://dev.azure.com/org/shop/_git/fleet", status: forge.Status{Commit: commit, Context: "x", State: forge.Pending}, want: in("pending")},
		"a success":                                {address: "https://dev.azure.com/org/shop/_git/fleet", status: forge.Status{Commit: commit, Context: "x", State: forge.Success, TargetURL: "file:///x"}, want: in("succeeded")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { tc.try(t, "azuredevops", newContract(t, public, "org.visualstudio.com")) })
	}
}

func TestPostAzureDevOpsServer(t *testing.T) {
	f := newContract(t)
	host := strings.TrimPrefix(f.server.URL, "http://")
	for name, above := range map[string]string{"in a collection": "/acme/shop", "in a collection of an application": "/tfs/acme/shop"} {
		t.Run(name, func(t *testing.T) {
			posting{address: f.server.URL + above + "/_git/fleet", status: web, want: azureRequest(host, above)}.try(t, "azuredevops", f)
		})
	}
}
