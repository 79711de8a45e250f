package keyservice

import (
	"net/url"
	"path"
	"testing"
)

// FuzzAddress: a file leads to no path but that of a key, whatever it names.
func FuzzAddress(f *testing.F) {
	f.Add("https://vault.example.com:8200", "teams/shop", "flux")
	f.Add("https://vault", "a..b", "c..d")
	f.Add("https://user@vault/../x?y#z", "../sys", "a/b")
	f.Fuzz(func(t *testing.T, address, engine, key string) {
		at := server(address)
		if at == "" || !isMount(engine) || !vaultSegment.MatchString(key) {
			return
		}
		to, err := url.Parse(at + "/v1/" + engine + "/decrypt/" + key)
		if err != nil || to.User != nil || to.RawQuery != "" || to.Fragment != "" || to.Path != "/v1/"+engine+"/decrypt/"+key || path.Clean(to.Path) != to.Path {
			t.Errorf("it leads to %s, error %v", to, err)
		}
	})
}
