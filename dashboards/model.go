package dashboards

import (
	"bytes"
	"encoding/json"
)

// schemaVersion is that of the dashboards of Grafana 11 to 13.
const schemaVersion = 42

// object is a part of Grafana's model without a type here.
type object = map[string]any

// board is the part of Grafana's dashboard that is used.
type board struct {
	Annotations   annotations `json:"annotations"`
	Description   string      `json:"description"`
	Editable      bool        `json:"editable"`
	GraphTooltip  int         `json:"graphTooltip"`
	Links         []object    `json:"links"`
	Panels        []panel     `json:"panels"`
	Refresh       string      `json:"refresh"`
	SchemaVersion int         `json:"schemaVersion"`
	Tags          []string    `json:"tags"`
	Templating    templating  `json:"templating"`
	Time          span        `json:"time"`
	Timezone      string      `json:"timezone"`
	Title         string      `json:"title"`
	UID           string      `json:"uid"`
}

type annotations struct {
	List []annotation `json:"list"`
}

// annotation marks the times at which an expression has a value.
type annotation struct {
	Datasource  datasource `json:"datasource"`
	Enable      bool       `json:"enable"`
	Expr        string     `json:"expr"`
	IconColor   string     `json:"iconColor"`
	Name        string     `json:"name"`
	TitleFormat string     `json:"titleFormat"`
	TextFormat  string     `json:"textFormat"`
}

type templating struct {
	List []variable `json:"list"`
}

// variable is one of the choices on top of a board.
type variable struct {
	AllValue   string      `json:"allValue,omitempty"`
	Current    *option     `json:"current,omitempty"`
	Datasource *datasource `json:"datasource,omitempty"`
	IncludeAll bool        `json:"includeAll"`
	Label      string      `json:"label"`
	Multi      bool        `json:"multi"`
	Name       string      `json:"name"`
	Query      any         `json:"query"`
	Refresh    int         `json:"refresh"`
	Sort       int         `json:"sort"`
	Type       string      `json:"type"`
}

type option struct {
	Selected bool   `json:"selected"`
	Text     string `json:"text"`
	Value    string `json:"value"`
}

type span struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// chosen is the data source that the variable of a board names.
func chosen() datasource { return datasource{"prometheus", "${datasource}"} }

// panel is one picture, or a row.
type panel struct {
	Collapsed       *bool        `json:"collapsed,omitempty"`
	Datasource      *datasource  `json:"datasource,omitempty"`
	Description     string       `json:"description,omitempty"`
	FieldConfig     *fieldConfig `json:"fieldConfig,omitempty"`
	GridPos         gridPos      `json:"gridPos"`
	ID              int          `json:"id"`
	Options         object       `json:"options,omitempty"`
	Panels          *[]panel     `json:"panels,omitempty"`
	Targets         []target     `json:"targets,omitempty"`
	Title           string       `json:"title"`
	Transformations []object     `json:"transformations,omitempty"`
	Type            string       `json:"type"`
}

type gridPos struct {
	H int `json:"h"`
	W int `json:"w"`
	X int `json:"x"`
	Y int `json:"y"`
}

type fieldConfig struct {
	Defaults  defaults   `json:"defaults"`
	Overrides []override `json:"overrides"`
}

type defaults struct {
	Color      object      `json:"color,omitempty"`
	Custom     object      `json:"custom,omitempty"`
	Decimals   *int        `json:"decimals,omitempty"`
	Mappings   []object    `json:"mappings,omitempty"`
	Max        *float64    `json:"max,omitempty"`
	Min        *float64    `json:"min,omitempty"`
	NoValue    string      `json:"noValue,omitempty"`
	Thresholds *thresholds `json:"thresholds,omitempty"`
	Unit       string      `json:"unit"`
}

type thresholds struct {
	Mode  string `json:"mode"`
	Steps []step `json:"steps"`
}

// step begins at Value; nil is minus infinity.
type step struct {
	Color string   `json:"color"`
	Value *float64 `json:"value"`
}

type override struct {
	Matcher    object   `json:"matcher"`
	Properties []object `json:"properties"`
}

// target is one expression of a panel.
type target struct {
	Datasource   datasource `json:"datasource"`
	EditorMode   string     `json:"editorMode"`
	Expr         string     `json:"expr"`
	Format       string     `json:"format"`
	Instant      bool       `json:"instant"`
	LegendFormat string     `json:"legendFormat"`
	Range        bool       `json:"range"`
	RefID        string     `json:"refId"`
}

// encode prints the board with the keys in a fixed order.
func (b *board) encode() []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(b); err != nil {
		panic("dashboards: " + err.Error()) // plain structs, strings and numbers
	}
	return out.Bytes()
}
