package forge

import (
	"crypto/sha1" //nolint:gosec // names a status, and keeps nothing safe
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// badLink is why Bitbucket may refuse a status: it wants a link with each.
const badLink = "Bitbucket does not take every link: check where statuses lead (serve --status-url)"

// bitbucketPlace is that of a repository on Bitbucket Cloud, of which there is one.
func bitbucketPlace(host *url.URL, parts []string) (place, bool) {
	repository := escape(parts)
	return place{
		before: "https://api.bitbucket.org/2.0/repositories/" + repository + "/commit/", after: "/statuses/build",
		page: "https://bitbucket.org/" + repository + "/commits/",
	}, strings.EqualFold(host.Host, "bitbucket.org") && len(parts) == 2
}

// dataCenterPlace is that of a repository on a server of one's own, which may be below a path.
func dataCenterPlace(host *url.URL, parts []string) (place, bool) {
	above, project, repository, found := cutDataCenter(parts)
	if !found {
		return place{}, false
	}
	base, names := host.String(), []string{"projects", project, "repos", repository}
	if len(above) > 0 {
		base += "/" + escape(above)
	}
	return place{
		before: base + "/rest/api/latest/" + escape(names) + "/commits/", after: "/builds",
		page: base + "/" + escape(names) + "/commits/",
	}, true
}

// cutDataCenter takes the path of a repository apart, as for a clone or as in a browser. The
// project of a person is called ~name.
func cutDataCenter(parts []string) (above []string, project, repository string, found bool) {
	n := len(parts)
	if n >= 4 && parts[n-2] == "repos" {
		switch parts[n-4] {
		case "projects":
			return parts[:n-4], parts[n-3], parts[n-1], true
		case "users":
			return parts[:n-4], "~" + parts[n-3], parts[n-1], true
		}
	}
	if n >= 3 && parts[n-3] == "scm" {
		return parts[:n-3], parts[n-2], parts[n-1], true
	}
	return nil, "", "", false
}

// bitbucketAuth takes a token, a user's name and a password in its place, or both in one.
func bitbucketAuth(secret map[string][]byte) (key, value string, err error) {
	token := strings.TrimSpace(string(secret["token"]))
	user, password := entry(secret, "username"), entry(secret, "password")
	switch {
	case strings.Contains(token, ":"):
		user, password, _ = strings.Cut(token, ":")
		if user == "" || password == "" {
			return "", "", fmt.Errorf("%w: the key token of the Secret must be a token, or <user>:<password>", ErrProvider)
		}
	case token != "":
		return "Authorization", "Bearer " + token, nil
	case user == "" || password == "":
		return "", "", fmt.Errorf("%w: the Secret has neither the key token nor username with password", ErrProvider)
	case strings.Contains(user, ":"):
		return "", "", fmt.Errorf("%w: the key username of the Secret must not contain ':'", ErrProvider)
	}
	return "Authorization", basic(user, password), nil
}

// entry returns what a Secret has under a key, without the line's end that comes of files.
func entry(secret map[string][]byte, key string) string {
	return strings.TrimRight(string(secret[key]), "\r\n")
}

// basic is the header of a user's name and a password.
func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

func bitbucketBody(s Status) any {
	return without(bitbucketFields(s))
}

// dataCenterBody names the status by its context where a build is required for a merge, too.
func dataCenterBody(s Status) any {
	fields := bitbucketFields(s)
	fields["parent"] = s.Context
	return without(fields)
}

// bitbucketFields are those of a status. Its key may have 40 characters, which are those of a
// hash: contexts that begin alike would share one if they were cut.
func bitbucketFields(s Status) map[string]string {
	sum := sha1.Sum([]byte(s.Context)) //nolint:gosec // as above
	state := map[State]string{Pending: "INPROGRESS", Success: "SUCCESSFUL", Failure: "FAILED"}[s.State]
	return map[string]string{"key": hex.EncodeToString(sum[:]), "state": state, "name": s.Context, "description": s.Description, "url": s.TargetURL}
}

// bitbucketLinks reports whether Bitbucket Cloud takes a link: names without a dot, as they are
// within a network, are refused.
func bitbucketLinks(target string) bool {
	u, err := url.Parse(target)
	return err == nil && strings.ContainsAny(u.Hostname(), ".:")
}
