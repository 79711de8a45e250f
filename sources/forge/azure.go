package forge

import (
	"net/url"
	"slices"
	"strings"
)

// azurePlace returns the API addresses of a repository on Azure DevOps Services,
// or on a self-hosted Azure DevOps Server.
func azurePlace(host *url.URL, parts []string) (place, bool) {
	n := len(parts)
	above, repository := parts[:n-2], parts[n-1]
	if parts[n-2] != "_git" || slices.Contains(above, "_git") {
		return place{}, false
	}
	server, roots, service := azureServer(host, above)
	if service && len(above) == roots {
		// The service omits the project from the path if the repository has the
		// same name.
		above = append(slices.Clone(above), repository)
	}
	return place{
		before: server + "/" + escape(above) + "/_apis/git/repositories/" + url.PathEscape(repository) + "/commits/",
		after:  "/statuses?api-version=7.1",
	}, len(above) == roots+1
}

// azureServer returns the address of the API, how many path segments stand before
// the project, and whether the host is the hosted service.
//
// At dev.azure.com one segment, the organization, stands before it. At
// <organization>.visualstudio.com, the older form, it is none, or
// DefaultCollection. On other hosts it is the collection, which may follow a
// virtual directory.
func azureServer(host *url.URL, above []string) (server string, roots int, service bool) {
	name := strings.ToLower(host.Host)
	switch {
	case name == "dev.azure.com":
		return "https://" + name, 1, true
	case strings.HasSuffix(name, ".visualstudio.com") && len(above) > 0 && above[0] == "DefaultCollection":
		return "https://" + name, 1, true
	case strings.HasSuffix(name, ".visualstudio.com"):
		return "https://" + name, 0, true
	default:
		return host.String(), min(max(len(above)-1, 1), 2), false
	}
}

// azureAuth authenticates with a personal access token, sent as the password of
// an empty user name.
func azureAuth(secret map[string][]byte) (key, value string, err error) {
	token, err := tokenOf(secret)
	return "Authorization", basic("", token), err
}

// azureBody uses the genre that Flux uses, so that the status replaces one that
// Flux posted.
func azureBody(s Status) any {
	state := map[State]string{Pending: "pending", Success: "succeeded", Failure: "failed"}[s.State]
	return struct {
		State       string            `json:"state"`
		Description string            `json:"description,omitempty"`
		TargetURL   string            `json:"targetUrl,omitempty"`
		Context     map[string]string `json:"context"`
	}{state, s.Description, s.TargetURL, map[string]string{"genre": "fluxcd", "name": s.Context}}
}
