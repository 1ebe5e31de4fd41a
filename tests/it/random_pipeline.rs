//! Random pipelines over three small sources, as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

/// `SplitMix64` (Steele, Lea and Flood 2014): enough to draw pipelines.
pub struct Draw(pub u64);

impl Draw {
    /// 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.below(items.len())].clone())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Int,
    List,
    Bytes,
    Image,
    ImageF32,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    kind: Kind,
    random: bool,
}

#[derive(Debug, Clone)]
struct Relation {
    name: String,
    columns: Vec<Column>,
    random: bool,
}

/// A pipeline's text under construction, with what is there to go on with.
struct Writer {
    draw: Draw,
    text: String,
    relations: Vec<Relation>,
    current: usize,
    names: usize,
    grown: usize,
}

impl Writer {
    fn new(seed: u64) -> Self {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind, random: false };
        let relation = |name: &str, columns| Relation { name: name.to_owned(), columns, random: false };
        let relations = vec![
            relation("pics", vec![column("path", Kind::Text), column("bytes", Kind::Bytes), column("size", Kind::Int)]),
            relation("texts", vec![column("id", Kind::Int), column("text", Kind::Text), column("n", Kind::Int)]),
            relation("words", vec![column("id", Kind::Int), column("word", Kind::Text), column("k", Kind::Int)]),
        ];
        let mut draw = Draw(seed);
        let current = [0, 0, 0, 1, 2][draw.below(5)];
        let text = "seed = 5\non_error = \"skip\"\n[source.pics]\nfiles = \"pics/*.bmp\"\n[source.texts]\njsonl = \
                    \"texts/*.jsonl\"\n[source.words]\ncsv = \"words.csv\"\n"
            .to_owned();
        Self { draw, text, relations, current, names: 0, grown: 0 }
    }

    fn here(&self) -> &Relation {
        &self.relations[self.current]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("c{}", self.names)
    }

    fn column(&mut self, kinds: &[Kind]) -> Option<Column> {
        let fit: Vec<Column> =
            self.here().columns.iter().filter(|column| kinds.contains(&column.kind)).cloned().collect();
        // What was made last, half of the time: chains are where rewrites have something to do.
        if self.draw.chance(50) { fit.last().cloned() } else { self.draw.of(&fit) }
    }

    fn begin(&mut self) {
        let from = self.here().name.clone();
        let _ = writeln!(self.text, "[[step]]\nfrom = \"{from}\"");
    }

    /// A step that makes columns.
    fn map(&mut self, op: &str, input: &Column, kinds: &[Kind], random: bool) {
        self.begin();
        let outs: Vec<String> = kinds.iter().map(|_| self.name()).collect();
        let quoted: Vec<String> = outs.iter().map(|out| format!("\"{out}\"")).collect();
        let _ = writeln!(self.text, "{op}\nout = [{}]", quoted.join(", "));
        if !op.starts_with("compute") {
            let _ = writeln!(self.text, "in = \"{}\"", input.name);
        }
        let random = random || input.random || self.here().random;
        let columns = outs.into_iter().zip(kinds).map(|(name, kind)| Column { name, kind: *kind, random });
        let current = self.current;
        self.relations[current].columns.extend(columns);
    }

    /// What a step that makes rows leaves behind: a relation of its own, or the one that it worked on anew.
    fn rows(&mut self, columns: Vec<Column>, random: bool) {
        if self.draw.chance(40) {
            self.names += 1;
            let name = format!("r{}", self.names);
            let _ = writeln!(self.text, "rows = \"{name}\"");
            self.relations.push(Relation { name, columns, random });
            self.current = self.relations.len() - 1;
        } else {
            let name = self.here().name.clone();
            let current = self.current;
            self.relations[current] = Relation { name, columns, random };
        }
    }

    fn step(&mut self) -> Option<()> {
        let has = |kind: Kind| self.here().columns.iter().any(|column| column.kind == kind);
        let (has_bytes, has_image) = (has(Kind::Bytes), has(Kind::Image) || has(Kind::ImageF32));
        // Steps on pictures need one: without that they would hardly ever be drawn.
        let choice = match self.draw.below(100) {
            0..40 if has_bytes && !has_image => 12,
            0..45 if has_image => 13,
            45..60 if has_image => 15,
            _ => self.draw.below(22),
        };
        match choice {
            0 | 1 => {
                let input = self.column(&[Kind::Int])?;
                self.map(&format!("compute = \"{} * 3 + 1\"", input.name), &input, &[Kind::Int], false);
            }
            2 => {
                let input = self.column(&[Kind::Text])?;
                self.map(&format!("compute = \"upper({})\"", input.name), &input, &[Kind::Text], false);
            }
            3 => {
                let input = self.column(&[Kind::Text])?;
                self.map(&format!("compute = \"length({})\"", input.name), &input, &[Kind::Int], false);
            }
            4 | 5 => {
                let input = self.column(&[Kind::Int, Kind::Text])?;
                self.begin();
                let condition = match input.kind {
                    Kind::Text => format!("length({}) > 4", input.name),
                    _ => format!("{} % 3 <> 1", input.name),
                };
                let _ = writeln!(self.text, "filter = \"{condition}\"");
                let (columns, random) = (self.here().columns.clone(), self.here().random || input.random);
                self.rows(columns, random);
            }
            6 => {
                let input = self.column(&[Kind::Text])?;
                // Letters from j on become more than a u8 holds: casts of them fail.
                let offset = if self.draw.chance(50) { 150 } else { 0 };
                self.map(&format!("op = \"text.bytes\"\noffset = {offset}"), &input, &[Kind::List], false);
            }
            7 => {
                let input = self.column(&[Kind::List])?;
                self.map("op = \"tensor.length\"", &input, &[Kind::Int], false);
            }
            8 => {
                let input = self.column(&[Kind::List])?;
                let dtype = ["f64", "i64", "u8"][self.draw.below(3)];
                self.map(&format!("op = \"tensor.cast\"\ndtype = \"{dtype}\""), &input, &[Kind::List], false);
            }
            9 | 10 => self.expand()?,
            11 => {
                let input = self.column(&[Kind::List]).filter(|input| !input.random && !self.here().random)?;
                self.begin();
                let out = self.name();
                let _ = writeln!(
                    self.text,
                    "op = \"tensor.pack\"\nin = \"{}\"\nout = \"{out}\"\nlength = 5\nend = 0\npad = 1",
                    input.name
                );
                self.rows(vec![Column { name: out, kind: Kind::List, random: false }], false);
            }
            12 => {
                let input = self.column(&[Kind::Bytes])?;
                self.map("op = \"image.decode\"", &input, &[Kind::Image], false);
            }
            13 | 14 => self.image()?,
            15 => {
                let input = self.column(&[Kind::Image, Kind::ImageF32])?;
                let frozen = if self.draw.chance(30) { "\nvariants = 2" } else { "" };
                let op = match self.draw.below(3) {
                    2 if input.kind == Kind::Image => {
                        format!("op = \"image.color_jitter\"\nbrightness = 0.5\nhue = 0.2{frozen}")
                    }
                    0 => format!("op = \"image.random_crop\"\nsize = [2, 2]{frozen}"),
                    _ => format!("op = \"image.random_flip\"{frozen}"),
                };
                self.map(&op, &input, &[input.kind], true);
            }
            16 => {
                let input = self.here().columns.first()?.clone();
                self.begin();
                let _ = writeln!(self.text, "op = \"rows.sample\"\nin = \"{}\"\nkeep = 0.6", input.name);
                let columns = self.here().columns.clone();
                self.rows(columns, true);
            }
            17 => {
                let input = self.column(&[Kind::Int, Kind::Text, Kind::List])?;
                self.together(&input)?;
                self.begin();
                let _ = writeln!(self.text, "op = \"rows.distinct\"\nin = \"{}\"", input.name);
                let columns = self.fixed_columns();
                self.rows(columns, false);
            }
            18 => {
                let (number, text) = (self.column(&[Kind::Int])?, self.column(&[Kind::Text])?);
                self.together(&number)?;
                self.together(&text)?;
                self.begin();
                let (group, many, top) = (self.name(), self.name(), self.name());
                let _ = writeln!(
                    self.text,
                    "sql = \"select {} % 4 as {group}, count(*) as {many}, max({}) as {top} from input group by 1\"",
                    number.name, text.name
                );
                let column = |name: String, kind| Column { name, kind, random: false };
                self.rows(vec![column(group, Kind::Int), column(many, Kind::Int), column(top, Kind::Text)], false);
            }
            19 => self.join()?,
            20 => self.union()?,
            _ => self.current = self.draw.below(self.relations.len()),
        }
        Some(())
    }

    /// Rows can only be put together where nothing random is in the way.
    fn together(&self, input: &Column) -> Option<()> {
        (!input.random && !self.here().random).then_some(())
    }

    fn fixed_columns(&self) -> Vec<Column> {
        self.here().columns.iter().filter(|column| !column.random).cloned().collect()
    }

    fn expand(&mut self) -> Option<()> {
        if self.grown >= 2 {
            return None;
        }
        let input = self.column(&[Kind::Text, Kind::List])?;
        self.grown += 1;
        self.begin();
        let (piece, position) = (self.name(), self.name());
        let (op, kind) = match input.kind {
            Kind::Text => ("op = \"text.split\"\nby = \" \"", Kind::Text),
            _ => ("op = \"tensor.windows\"\nsize = 3\nhop = 2\nrest = \"pad\"", Kind::List),
        };
        let _ = writeln!(self.text, "{op}\nin = \"{}\"\nout = [\"{piece}\", \"{position}\"]", input.name);
        let random = self.here().random || input.random;
        let mut columns = self.here().columns.clone();
        columns.push(Column { name: piece, kind, random });
        columns.push(Column { name: position, kind: Kind::Int, random });
        self.rows(columns, random);
        Some(())
    }

    fn image(&mut self) -> Option<()> {
        let input = self.column(&[Kind::Image, Kind::ImageF32])?;
        let is_u8 = input.kind == Kind::Image;
        match self.draw.below(7) {
            // -1, a black element, fits no u8: whether a row is good depends on what is cut away.
            0 | 5 if !is_u8 => self.map("op = \"tensor.cast\"\ndtype = \"u8\"", &input, &[Kind::Image], false),
            0 if is_u8 => self.map("op = \"image.resize\"\nsize = [6, 5]", &input, &[Kind::Image], false),
            1 => self.map("op = \"image.center_crop\"\nsize = [4, 3]", &input, &[input.kind], false),
            2 | 3 if is_u8 => self.map("op = \"image.normalize\"", &input, &[Kind::ImageF32], false),
            4 if is_u8 => self.map("op = \"tensor.cast\"\ndtype = \"f32\"", &input, &[Kind::ImageF32], false),
            _ => self.map("op = \"image.shape\"", &input, &[Kind::Int, Kind::Int], false),
        }
        Some(())
    }

    fn join(&mut self) -> Option<()> {
        if self.grown >= 2 {
            return None;
        }
        let other = self.draw.below(self.relations.len());
        let left = self.column(&[Kind::Int])?;
        self.together(&left)?;
        let right = self.relations[other].clone();
        let keys: Vec<Column> =
            right.columns.iter().filter(|column| column.kind == Kind::Int && !column.random).cloned().collect();
        let key = self.draw.of(&keys)?;
        if right.random {
            return None;
        }
        self.grown += 1;
        self.begin();
        self.names += 1;
        let suffix = format!("_s{}", self.names);
        let how = if self.draw.chance(50) { "left" } else { "inner" };
        let _ = writeln!(
            self.text,
            "join = \"{}\"\non = \"{} = {}\"\nhow = \"{how}\"\nsuffix = \"{suffix}\"",
            right.name, left.name, key.name
        );
        let mut columns = self.fixed_columns();
        let all: BTreeSet<String> = self.here().columns.iter().map(|column| column.name.clone()).collect();
        for mut column in right.columns.into_iter().filter(|column| !column.random) {
            if left.name == key.name && column.name == key.name {
                continue;
            }
            if all.contains(&column.name) {
                column.name.push_str(&suffix);
            }
            // An empty file is no picture: a left join would make bad rows of all that it adds.
            if how == "left" && matches!(column.kind, Kind::Bytes | Kind::Image | Kind::ImageF32) {
                continue;
            }
            columns.push(column);
        }
        self.rows(columns, false);
        Some(())
    }

    fn union(&mut self) -> Option<()> {
        let other = self.draw.below(self.relations.len());
        let right = self.relations[other].clone();
        let left = self.here().clone();
        if left.random || right.random || self.grown >= 2 {
            return None;
        }
        self.grown += 1;
        let common: Vec<Column> = left
            .columns
            .iter()
            .filter(|column| !column.random)
            .filter(|column| right.columns.iter().any(|o| o.name == column.name && o.kind == column.kind && !o.random))
            .cloned()
            .collect();
        if common.is_empty() {
            return None;
        }
        self.begin();
        let _ = writeln!(self.text, "union = [\"{}\", \"{}\"]", left.name, right.name);
        self.rows(common, false);
        Some(())
    }

    fn finish(mut self) -> String {
        let here = self.here().clone();
        let mut columns: Vec<Column> =
            here.columns.iter().filter(|column| column.kind != Kind::Bytes).cloned().collect();
        // The latest columns, and some of the others.
        while columns.len() > 4 {
            let at = self.draw.below(columns.len().div_ceil(2));
            columns.remove(at);
        }
        let quoted: Vec<String> = columns.iter().map(|column| format!("\"{}\"", column.name)).collect();
        let _ = writeln!(self.text, "[output]\nfrom = \"{}\"\ncolumns = [{}]", here.name, quoted.join(", "));
        self.text
    }
}

/// The text of the pipeline of that number.
pub fn pipeline_text(seed: u64) -> String {
    let mut writer = Writer::new(seed);
    let steps = 2 + writer.draw.below(14);
    let mut made = 0;
    for _ in 0..8 * steps {
        if made == steps {
            break;
        }
        made += usize::from(writer.step().is_some());
    }
    writer.finish()
}
